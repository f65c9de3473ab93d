"""Answers of a tiny random language model, through the driver, against transformers' own."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from loop_rig import Rig
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    DeepseekV3Config,
    FalconConfig,
    Gemma2Config,
    GPT2Config,
    MambaConfig,
    PreTrainedConfig,
    Qwen3Config,
)

from reverie.engine.emissions import StepFailed, TextOut
from reverie.engine.inputs import ControlId, TurnInput
from reverie.engine.options import DriverOptions
from reverie.models.causal_lm.checkpoint.loading import random_model
from reverie.models.causal_lm.components import ChatComponents
from reverie.models.causal_lm.config import RANDOM
from reverie.models.causal_lm.conversation import Message
from reverie.models.causal_lm.kernel import PIECE, ChatKernel
from reverie.models.causal_lm.spec import CausalLm
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.loop import LoopRequest

LONG = "what is the water like over there, and who is walking along its shore today? " * 2


@pytest.fixture(scope="module")
def loaded() -> Rig:
    options = LoadOptions(device="cpu", checkpoint=RANDOM, sessions=4, history_chunks=2)
    return Rig(CausalLm(), options)


def opened(loaded: Rig, prompt: str = "", seed: int = 7, **parameters: float) -> Rig:
    rig = loaded.again()
    given = {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "longest": 40, **parameters}
    rig.open(LoopRequest("s1", seed, prompt, given), DriverOptions(history_chunks=2))
    return rig


def say(rig: Rig, text: str) -> None:
    rig.drivers["s1"].push([TurnInput(ControlId(text), text)])


def texts(rig: Rig) -> list[TextOut]:
    return [said for said in rig.heard["s1"] if isinstance(said, TextOut)]


def answer(rig: Rig, text: str) -> str:
    """Say something and return the whole answer."""
    before = len(texts(rig))
    say(rig, text)
    rig.run(lambda: any(said.final for said in texts(rig)[before:]))
    return "".join(said.text for said in texts(rig)[before:])


def chat_of(rig: Rig) -> ChatComponents:
    assert isinstance(rig.kernel, ChatKernel)
    return rig.kernel.components


def generated(rig: Rig, messages: tuple[Message, ...], seed: int = 7, **options: Any) -> str:
    """Return what `generate` says to the same messages."""
    components = chat_of(rig)
    ids = torch.tensor([components.conversation.ids(messages, 40)])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = components.model
        made = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=40, pad_token_id=0, **options
        )
    new = tuple(made[0, ids.shape[1] :].tolist())
    return components.conversation.text(tuple(t for t in new if t not in components.ends))


class TestEqualToGenerate:
    """Token for token."""

    @pytest.mark.parametrize("text", ["hello", LONG])
    def test_the_likeliest_answer_is_generates(self, loaded: Rig, text: str) -> None:
        rig = opened(loaded, prompt="be brief")
        wanted = generated(
            rig, (Message("system", "be brief"), Message("user", text)), do_sample=False
        )
        assert answer(rig, text) == wanted
        assert len(wanted) > 10

    @pytest.mark.parametrize(
        "options",
        [
            {"temperature": 1.0},
            {"temperature": 0.7, "top_k": 20},
            {"temperature": 1.3, "top_p": 0.8},
            {"temperature": 0.9, "top_k": 50, "top_p": 0.6},
            {"temperature": 1.1, "min_p": 0.2},
            {"temperature": 0.8, "repetition_penalty": 1.4},
            {
                "temperature": 1.2,
                "top_k": 60,
                "top_p": 0.9,
                "min_p": 0.05,
                "repetition_penalty": 1.1,
            },
        ],
    )
    @pytest.mark.parametrize("seed", [7, 8])
    def test_a_seeded_answer_is_generates(
        self, loaded: Rig, options: dict[str, float], seed: int
    ) -> None:
        rig = opened(loaded, "", seed, **options)
        asked = {"top_k": 0, "top_p": 1.0, **options}
        wanted = generated(rig, (Message("user", "hello"),), seed, do_sample=True, **asked)
        assert answer(rig, "hello") == wanted

    def test_the_likeliest_answer_is_generates_under_a_repetition_penalty(
        self, loaded: Rig
    ) -> None:
        messages = (Message("user", LONG),)
        wanted = generated(loaded, messages, do_sample=False, repetition_penalty=1.6)
        assert answer(opened(loaded, repetition_penalty=1.6), LONG) == wanted
        assert wanted != generated(loaded, messages, do_sample=False)

    def test_a_second_turn_reads_only_what_is_new(self, loaded: Rig) -> None:
        rig = opened(loaded)
        first = answer(rig, LONG)
        units = len(rig.units("s1"))
        second = answer(rig, "and then?")
        messages = (
            Message("user", LONG),
            Message("assistant", first),
            Message("user", "and then?"),
        )
        assert second == generated(rig, messages, do_sample=False)
        later = rig.units("s1")[units:]
        whole = len(chat_of(rig).conversation.ids(messages, 40))
        assert [unit.kind for unit in later].count("prefill") < whole // PIECE


COMMON: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 512, "initializer_range": 0.5,
}  # fmt: skip
KINDS: dict[str, Callable[..., PreTrainedConfig]] = {
    "grouped heads": partial(Qwen3Config, **COMMON, num_key_value_heads=2, head_dim=16),
    "a sliding window": partial(Gemma2Config, **COMMON, num_key_value_heads=2, head_dim=8,
                                sliding_window=16),
    "one key for all heads": partial(FalconConfig, hidden_size=32, num_hidden_layers=2,
                                     num_attention_heads=4, initializer_range=0.5),
    "no positions at all": partial(BloomConfig, hidden_size=32, n_layer=2, n_head=4,
                                   initializer_range=0.5),
    "learnt positions": partial(GPT2Config, n_embd=32, n_layer=2, n_head=4, n_positions=512,
                                initializer_range=0.5),
    "keys wider than values": partial(
        DeepseekV3Config, **COMMON, q_lora_rank=None, kv_lora_rank=16, qk_rope_head_dim=8,
        qk_nope_head_dim=8, v_head_dim=8, n_routed_experts=4, num_experts_per_tok=2, n_group=1,
        topk_group=1, first_k_dense_replace=1, moe_intermediate_size=16,
    ),
}  # fmt: skip


def saved(folder: Path, kind: Callable[..., PreTrainedConfig]) -> LoadOptions:
    """Save a tiny random model of a kind as the library does, and return how to load it."""
    _, tokenizer = random_model()
    size = len(tokenizer)
    config = kind(vocab_size=size, eos_token_id=size - 1, bos_token_id=None, pad_token_id=0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        make: Any = AutoModelForCausalLM.from_config
        make(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return LoadOptions(
        device="cpu", checkpoint=str(folder), sessions=2, history_chunks=2, precision="float32"
    )


class TestKinds:
    """Other decoder-only models of the library."""

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_likeliest_answer_is_generates(self, tmp_path: Path, kind: str) -> None:
        rig = opened(Rig(CausalLm(), saved(tmp_path, KINDS[kind])))
        wanted = generated(rig, (Message("user", LONG),), do_sample=False)
        assert answer(rig, LONG) == wanted
        assert wanted

    def test_a_memory_that_is_no_cache_of_keys_and_values_is_refused(self, tmp_path: Path) -> None:
        mamba = partial(MambaConfig, hidden_size=32, num_hidden_layers=2)
        with pytest.raises(CheckpointError, match="plain key/value cache"):
            CausalLm().load(saved(tmp_path, mamba))


class TestUnits:
    """What runs between two turns of the scheduler."""

    def test_a_long_turn_is_read_in_bounded_pieces(self, loaded: Rig) -> None:
        rig = opened(loaded)
        answer(rig, LONG)
        kinds = [unit.kind for unit in rig.units("s1")]
        pieces = -(-(len(f"user: {LONG}\nassistant:") - 1) // PIECE)
        assert kinds[0] == "listen"
        assert kinds[1 : pieces + 1] == ["prefill"] * pieces
        assert set(kinds[pieces + 1 : -1]) == {"decode_token"}
        assert kinds[-1] == "end"

    def test_an_answer_ends_where_the_context_does(self, loaded: Rig) -> None:
        rig = opened(loaded, longest=4096, temperature=1.0)
        pool, context = rig.instance.blocks, chat_of(rig).conversation.context
        assert pool is not None
        for _ in range(3):
            answer(rig, LONG)
            assert not rig.heard_of("s1", StepFailed)
        assert max(unit.step for unit in rig.units("s1")) > context

    def test_text_comes_in_whole_characters(self, loaded: Rig) -> None:
        conversation = chat_of(loaded).conversation
        ids = tuple(conversation.tokenizer.encode("un lac gelé ❄️ la nuit"))
        said = [conversation.text(ids[:count]) for count in range(len(ids) + 1)]
        assert all(later.startswith(earlier) for earlier, later in pairwise(said))
        assert all("\N{REPLACEMENT CHARACTER}" not in text for text in said)
        assert said[-1] == "un lac gelé ❄️ la nuit"

    def test_every_page_is_given_back(self, loaded: Rig) -> None:
        rig = opened(loaded)
        answer(rig, LONG)
        pool = rig.instance.blocks
        assert pool is not None
        free = pool.free
        rig.close("s1")
        assert pool.free > free


class TestInterruption:
    """Between two tokens."""

    def test_what_was_said_counts_as_said(self, loaded: Rig) -> None:
        rig = opened(loaded)
        say(rig, "hello")
        rig.run(lambda: len(texts(rig)) >= 5)
        said = "".join(text.text for text in texts(rig))
        rig.drivers["s1"].cancel()
        second = answer(rig, "go on")
        messages = (Message("user", "hello"), Message("assistant", said), Message("user", "go on"))
        assert second == generated(rig, messages, do_sample=False)

    def test_a_turn_that_waits_is_answered_next(self, loaded: Rig) -> None:
        rig = opened(loaded)
        say(rig, "one")
        say(rig, "two")
        rig.run(lambda: sum(said.final for said in texts(rig)) == 2)
        answers = [said.answers for said in texts(rig) if said.final]
        assert answers == ["one", "two"]
