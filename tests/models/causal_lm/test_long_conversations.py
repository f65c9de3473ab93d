"""How far a language model looks back, what it says of what it forgets, and what a token costs."""

import json
import logging
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from loop_rig import Rig
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from reverie.engine.emissions import ControlApplied, StepFailed, TextOut
from reverie.engine.inputs import ControlId, TurnInput
from reverie.engine.options import DriverOptions
from reverie.models.causal_lm.checkpoint.loading import random_model
from reverie.models.causal_lm.config import CONTEXT, PAGE_TOKENS, RANDOM
from reverie.models.causal_lm.context_length import context_for
from reverie.models.causal_lm.conversation import UNFINISHED, Conversation, DecodedSpan
from reverie.models.causal_lm.kernel import ChatKernel
from reverie.models.causal_lm.spec import CausalLm, chat_spec
from reverie.models.contract.blocks import BlockId
from reverie.models.contract.controls import NO_CONTROLS
from reverie.models.contract.errors import OptionError
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.loop import LoopRequest, StepBatch, StepUnit, WorkPlan

LENGTH = 4096


def saved(folder: Path, positions: int = LENGTH, **generation: Any) -> LoadOptions:
    """Save a tiny random model that attends to so many tokens, with what it says of speaking."""
    _, tokenizer = random_model()
    size = len(tokenizer)
    config = LlamaConfig(
        vocab_size=size, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=positions,
        initializer_range=0.5, eos_token_id=size - 1, bos_token_id=None,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    path = folder / "generation_config.json"
    if generation:
        path.write_text(json.dumps({"eos_token_id": size - 1, **generation}))
    return LoadOptions(
        device="cpu", checkpoint=str(folder), sessions=1, history_chunks=1, precision="float32"
    )


def opened(rig: Rig, stop: tuple[str, ...] = (), **parameters: float) -> Rig:
    spec = rig.instance.spec.loops[0]
    given = {each.name: each.default for each in spec.parameters} | parameters
    options = DriverOptions(history_chunks=1)
    rig.open(LoopRequest("s1", 7, "", given, stop), options)
    return rig


def answer(rig: Rig, text: str) -> str:
    """Say something and return the whole answer."""
    before = len(rig.heard_of("s1", TextOut))
    rig.drivers["s1"].push([TurnInput(ControlId(text), text)])
    rig.run(lambda: any(said.final for said in rig.heard_of("s1", TextOut)[before:]))
    return "".join(said.text for said in rig.heard_of("s1", TextOut)[before:])


class TestContext:
    """As many tokens as the model can, where they fit."""

    def test_a_model_attends_to_as_many_tokens_as_it_was_made_for(self, tmp_path: Path) -> None:
        instance = CausalLm().load(saved(tmp_path))
        loop = instance.spec.loops[0]
        assert loop.window_blocks * PAGE_TOKENS == loop.prompt_tokens == LENGTH
        assert next(each for each in loop.parameters if each.name == "longest").high >= LENGTH

    def test_the_operator_can_choose_fewer_and_no_more(self, tmp_path: Path) -> None:
        options = saved(tmp_path)
        fewer = LoadOptions(device="cpu", checkpoint=options.checkpoint, sessions=1, context=300)
        assert CausalLm().load(fewer).spec.loops[0].prompt_tokens == 288
        more = LoadOptions(device="cpu", checkpoint=options.checkpoint, sessions=1, context=5000)
        with pytest.raises(
            OptionError, match="must be at most 4096 tokens for this model, not 5000"
        ):
            CausalLm().load(more)

    def test_what_does_not_fit_the_memory_is_halved_and_said(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        spec_of = partial(chat_spec, page=(PAGE_TOKENS, 64))
        options = LoadOptions(sessions=2)
        each = spec_of(32_768).bytes_a_session(1, "float32")
        assert each is not None
        chosen = partial(context_for, 131_072, options, spec_of, "float32")
        assert chosen(free_bytes=2**60) == 131_072
        assert not caplog.records
        assert chosen(free_bytes=2 * each) == 32_768
        assert "the context is 32768 tokens instead of 131072" in caplog.text
        assert chosen(free_bytes=1) == CONTEXT

    def test_a_session_counts_what_it_holds_in_one_piece(self) -> None:
        loop = chat_spec(1024, page=(PAGE_TOKENS, 64), token_bytes=256).loops[0]
        assert loop.state_bytes >= 1024 * 256

    def test_an_answer_goes_beyond_what_used_to_be_the_end(self, tmp_path: Path) -> None:
        rig = opened(Rig(CausalLm(), saved(tmp_path)), longest=30, temperature=1.0)
        text = "x" * 2500
        answer(rig, text)
        [receipt] = rig.heard_of("s1", ControlApplied)
        assert (receipt.truncated_at, receipt.dropped_messages) == (None, 0)
        kinds = [unit.kind for unit in rig.units("s1")]
        assert kinds.count("prefill") == -(-len(f"user: {text}\nassistant:") // 64)


class TestForgetting:
    """The sender of a turn is told what gave way for it."""

    def test_the_receipt_counts_the_messages_that_gave_way(self) -> None:
        rig = opened(Rig(CausalLm(), LoadOptions(device="cpu", checkpoint=RANDOM, sessions=1)))
        told = []
        for number in range(8):
            answer(rig, f"{number} " + "z" * 90)
            told.append(rig.heard_of("s1", ControlApplied)[-1].dropped_messages)
        assert told[0] == 0
        assert sum(told) >= 8
        assert len(rig.drivers["s1"].state.messages) == 16 - sum(told)  # no later turn pays again

    def test_the_receipt_says_how_much_was_read_of_a_turn_that_is_too_long(self) -> None:
        rig = opened(Rig(CausalLm(), LoadOptions(device="cpu", checkpoint=RANDOM, sessions=1)))
        answer(rig, "y" * 2000)
        [receipt] = rig.heard_of("s1", ControlApplied)
        assert receipt.truncated_at == 512 - 256


class TestDefaults:
    """What the checkpoint's generation_config.json says."""

    def test_a_session_begins_as_the_checkpoint_says(self, tmp_path: Path) -> None:
        options = saved(
            tmp_path,
            do_sample=True,
            temperature=0.6,
            top_p=0.9,
            top_k=20,
            max_new_tokens=77,
            min_p=0.05,
            repetition_penalty=1.1,
        )
        found = {
            each.name: each.default for each in CausalLm().load(options).spec.loops[0].parameters
        }
        assert found == {
            "temperature": 0.6,
            "top_p": 0.9,
            "top_k": 20,
            "longest": 77,
            "min_p": 0.05,
            "repetition_penalty": 1.1,
        }

    def test_one_that_does_not_sample_takes_the_likeliest(self, tmp_path: Path) -> None:
        options = saved(tmp_path, do_sample=False, temperature=0.6, top_k=20)
        parameters = CausalLm().load(options).spec.loops[0].parameters
        assert next(each for each in parameters if each.name == "temperature").default == 0.0

    def test_what_is_not_heeded_is_named(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        CausalLm().load(saved(tmp_path, no_repeat_ngram_size=3, do_sample=True))
        with caplog.at_level(logging.WARNING):
            assert "has settings that are ignored: no_repeat_ngram_size 3" in caplog.text

    def test_its_stop_strings_end_an_answer(self, tmp_path: Path) -> None:
        plain = opened(Rig(CausalLm(), saved(tmp_path / "a")), longest=40)
        whole = answer(plain, "hello")
        stop = whole[10:12]
        rig = opened(Rig(CausalLm(), saved(tmp_path / "b", stop_strings=[stop])), longest=40)
        assert answer(rig, "hello") == whole[: whole.find(stop)]


class TestStopsOfASession:
    """Texts that one session ends its answers at."""

    def test_an_answer_is_said_up_to_one(self, tmp_path: Path) -> None:
        rig = Rig(CausalLm(), saved(tmp_path))
        whole = answer(opened(rig, longest=40), "hello")
        stop = whole[7:10]
        rig = opened(rig.again(), (stop, "never said"), longest=40)
        assert answer(rig, "hello") == whole[: whole.find(stop)]
        assert rig.drivers["s1"].state.messages[-1].text == whole[: whole.find(stop)]

    def test_the_end_says_what_was_held_back_for_one_that_did_not_come(
        self, tmp_path: Path
    ) -> None:
        rig = Rig(CausalLm(), saved(tmp_path))
        whole = answer(opened(rig, longest=12), "hello")
        rig = opened(rig.again(), (whole[-2:] + "never",), longest=12)
        assert answer(rig, "hello") == whole


def byte_words() -> Any:
    return random_model()[1]


def metaspace_words() -> Any:
    """Return words whose leading space is dropped at the beginning of a text."""
    vocabulary = {sign: number for number, sign in enumerate(["<unk>", "▁", *"abcdefgh.,"])}
    vocabulary |= {"▁a": 13, "▁bc": 14, "de": 15}
    words = Tokenizer(models.BPE(vocabulary, [("▁", "a"), ("d", "e")], unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Metaspace()
    words.decoder = decoders.Metaspace()
    make: Any = PreTrainedTokenizerFast
    return make(tokenizer_object=words, unk_token="<unk>")


def word_pieces() -> Any:
    """Return words that are joined by a space, which is then taken from before punctuation."""
    signs = ["[UNK]", "the", "lake", ".", ",", "##s", "is", "n", "'", "t"]
    vocabulary = {sign: number for number, sign in enumerate(signs)}
    words = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    words.decoder = decoders.WordPiece()
    make: Any = PreTrainedTokenizerFast
    return make(tokenizer_object=words, unk_token="[UNK]")


class TestSpelling:
    """Text that comes token by token is the text of all tokens."""

    @pytest.mark.parametrize("words", [byte_words, metaspace_words, word_pieces])
    @pytest.mark.parametrize("seed", range(20))
    def test_it_is_what_decoding_all_at_once_gives(self, words: Any, seed: int) -> None:
        tokenizer = words()
        conversation = Conversation(tokenizer, 512)
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randint(0, len(tokenizer), (60,), generator=generator).tolist()
        if words is byte_words and seed % 2:
            drawn = tokenizer.encode("où la nuit ❄️ dort, 雪が降る lac gelé 🏔️ " * 2)
        said, decoded = "", DecodedSpan()
        for count in range(1, len(drawn) + 1):
            new, decoded = conversation.decode(tuple(drawn[:count]), decoded)
            said += new
            assert not said.endswith(UNFINISHED)
        assert conversation.text(tuple(drawn)).startswith(said)
        missing = conversation.text(tuple(drawn))[len(said) :]
        assert not missing.strip(UNFINISHED)


class TestCost:
    """A token costs the same wherever it comes, but for attention itself."""

    def test_a_token_neither_gathers_the_cache_nor_decodes_the_answer_anew(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rig = opened(Rig(CausalLm(), saved(tmp_path)), longest=600, temperature=1.0)
        assert isinstance(rig.kernel, ChatKernel)
        pool, tokenizer = rig.instance.blocks, rig.kernel.components.conversation.tokenizer
        assert pool is not None
        gathered: list[int] = []
        decoded: list[int] = []
        gather, decode = pool.gather, tokenizer.decode

        def counting_gather(blocks: tuple[BlockId, ...]) -> torch.Tensor:
            gathered.append(len(blocks))
            return gather(blocks)

        def counting_decode(ids: list[int], **options: Any) -> Any:
            decoded.append(len(ids))
            return decode(ids, **options)

        monkeypatch.setattr(pool, "gather", counting_gather)
        monkeypatch.setattr(tokenizer, "decode", counting_decode)
        answer(rig, "x" * 700)
        answer(rig, "and then?")
        assert len(decoded) > 300
        assert max(decoded) <= 40  # a run of bytes that make no character yet
        assert gathered == []

    def test_the_keys_stay_where_they_are_as_tokens_come(self, tmp_path: Path) -> None:
        rig = opened(Rig(CausalLm(), saved(tmp_path)), longest=400, temperature=1.0)
        places = set()
        rig.drivers["s1"].push([TurnInput(ControlId("t"), "x" * 1500)])
        seen = 0
        while not any(said.final for said in rig.heard_of("s1", TextOut)):
            rig.step()
            working = rig.drivers["s1"].state.cached.working
            if working is not None and working.length > 1500:
                places.add(working.cache.layers[0].keys.data_ptr())
                seen += 1
        assert seen > 100
        assert len(places) <= 2  # it grew once at most


class TestSharing:
    """A working cache is one state's; another finds that out."""

    def test_a_state_that_is_run_twice_gives_the_same_both_times(self, tmp_path: Path) -> None:
        rig = opened(Rig(CausalLm(), saved(tmp_path)), longest=50)
        rig.drivers["s1"].push([TurnInput(ControlId("t"), "x" * 200)])
        rig.run(lambda: len(rig.heard_of("s1", TextOut)) >= 5)
        state = rig.drivers["s1"].state
        pool, kernel = rig.instance.blocks, rig.kernel
        assert pool is not None
        ways = []
        for _ in range(3):  # the second and the third find the working cache taken
            after, logits = state, []
            for _ in range(PAGE_TOKENS + 3):
                plan = kernel.plan_step(after, NO_CONTROLS)
                assert isinstance(plan, WorkPlan)
                unit = StepUnit(plan, after, NO_CONTROLS, pool.reserve(plan.writes))
                with torch.inference_mode():
                    [result] = kernel.run_step(StepBatch(rig.instance, (unit,)))
                after = result.state
                logits += list(result.checks)
            ways.append((after.answer, torch.stack(logits)))
        assert ways[0][0] == ways[1][0] == ways[2][0]
        for other in ways[1:]:
            assert torch.allclose(ways[0][1], other[1], atol=1e-4)

    def test_a_pass_that_failed_half_way_leaves_nothing_behind(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rig = Rig(CausalLm(), saved(tmp_path))
        whole = answer(opened(rig, longest=30), "hello")
        rig = opened(rig.again(), longest=30)
        rig.drivers["s1"].push([TurnInput(ControlId("t"), "hello")])
        rig.run(lambda: len(rig.heard_of("s1", TextOut)) >= 5)
        assert isinstance(rig.kernel, ChatKernel)
        working = rig.drivers["s1"].state.cached.working
        assert working is not None
        last = working.cache.layers[-1]

        def fails(*args: Any, **options: Any) -> Any:
            monkeypatch.undo()
            raise RuntimeError("no memory is left for the last layer")

        monkeypatch.setattr(last, "update", fails)
        rig.run(lambda: bool(rig.heard_of("s1", StepFailed)))
        rig.run(lambda: rig.heard_of("s1", TextOut)[-1].final)
        assert "".join(said.text for said in rig.heard_of("s1", TextOut)) == whole
