"""LoRAs of a language model, against `generate` of a model whose weights are summed up by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from loop_rig import Rig
from lora_files import linear, pairs_for, tensors_of, write_peft
from safetensors.torch import save_file
from tiny_lm import TinyLm, tiny_options

from reverie.cli import main
from reverie.engine.emissions import ControlApplied, TextOut
from reverie.engine.inputs import ControlId, ParameterInput, TurnInput
from reverie.engine.options import DriverOptions
from reverie.models.causal_lm.checkpoint.loading import random_model
from reverie.models.causal_lm.conversation import Message
from reverie.models.causal_lm.kernel import ChatKernel
from reverie.models.contract.instance import AdapterOption
from reverie.models.contract.loop import LoopRequest

PATHS = tuple(
    f"model.layers.{layer}.{part}"
    for layer in range(2)
    for part in ("self_attn.q_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.down_proj")
)
SEEDS = {"a": 1, "b": 2}
SETTINGS = {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "longest": 24}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, model = tmp_path_factory.mktemp("loras"), random_model()[0]
    return {
        name: write_peft(folder / name, pairs_for(model, PATHS, seed))
        for name, seed in SEEDS.items()
    }


@pytest.fixture(scope="module")
def loaded(files: dict[str, Path]) -> Rig:
    adapters = tuple(AdapterOption(name, str(path)) for name, path in files.items())
    return Rig(TinyLm(), replace(tiny_options(), adapters=adapters))


def opened(loaded: Rig, *sessions: str, **parameters: float) -> Rig:
    rig = loaded.again()
    for session in sessions or ("s1",):
        request = LoopRequest(session, 7, "", {**SETTINGS, **parameters})
        rig.open(request, DriverOptions(history_chunks=2))
    return rig


def answer(rig: Rig, text: str, session: str = "s1") -> str:
    before = len(rig.heard_of(session, TextOut))
    rig.drivers[session].push([TurnInput(ControlId(text), text)])
    rig.run(lambda: any(said.final for said in rig.heard_of(session, TextOut)[before:]))
    return "".join(said.text for said in rig.heard_of(session, TextOut)[before:])


def generated(rig: Rig, said: Sequence[str], mix: Mapping[str, float]) -> str:
    """Return what `generate` says with summed up weights; alpha is twice the rank."""
    assert isinstance(rig.kernel, ChatKernel)
    components, model = rig.kernel.components, random_model()[0]
    with torch.no_grad():
        for name, strength in mix.items():
            for path, (down, up) in pairs_for(random_model()[0], PATHS, SEEDS[name]).items():
                linear(model, path).weight += 2 * strength * up @ down
    roles: Any = ("user", "assistant")
    messages = tuple(Message(roles[n % 2], text) for n, text in enumerate(said))
    ids = torch.tensor([components.conversation.ids(messages, 24)])
    maker: Any = model
    made = maker.eval().generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=24,
        pad_token_id=0,
        do_sample=False,
    )
    new = tuple(made[0, ids.shape[1] :].tolist())
    return components.conversation.text(tuple(t for t in new if t not in components.ends))


def choose(rig: Rig, **strengths: float) -> None:
    rig.drivers["s1"].push(
        [
            ParameterInput(ControlId(name), f"lora_{name}", value)
            for name, value in strengths.items()
        ]
    )


def test_an_answer_under_a_mix_is_that_of_the_summed_weights(loaded: Rig) -> None:
    rig = opened(loaded, lora_a=1.0, lora_b=0.5)
    said = answer(rig, "hello")
    assert said == generated(rig, ["hello"], {"a": 1.0, "b": 0.5})
    assert said != generated(rig, ["hello"], {})


def test_after_a_switch_nothing_of_the_old_one_is_left(loaded: Rig) -> None:
    rig = opened(loaded, lora_a=1.0)
    first = answer(rig, "hello")
    choose(rig, a=0.0, b=1.0)
    second = answer(rig, "and then?")
    assert second == generated(rig, ["hello", first, "and then?"], {"b": 1.0})
    assert {told.control for told in rig.heard_of("s1", ControlApplied)} >= {"a", "b"}
    choose(rig, b=0.0)
    third = answer(rig, "why?")
    assert third == generated(rig, ["hello", first, "and then?", second, "why?"], {})


def test_what_stays_the_same_is_not_read_anew(loaded: Rig) -> None:
    rig = opened(loaded, lora_a=1.0)
    answer(rig, "hello")
    choose(rig, a=1.0)
    answer(rig, "again")
    reads = [unit.chunk for unit in rig.units("s1") if unit.kind == "prefill"]
    pieces_of_second = reads.count(1)
    choose(rig, a=0.5)
    answer(rig, "once more")
    reads = [unit.chunk for unit in rig.units("s1") if unit.kind == "prefill"]
    assert reads.count(2) > pieces_of_second


def test_merged_it_says_the_same_under_another_version(loaded: Rig, files: dict[str, Path]) -> None:
    option = AdapterOption("a", str(files["a"]), merged=True, strength=1.0)
    rig = Rig(TinyLm(), replace(tiny_options(), adapters=(option,)))
    assert rig.instance.weights_version != loaded.instance.weights_version
    assert "lora_a" not in {spec.name for spec in rig.kernel.spec.parameters}
    assert answer(opened(rig), "hello") == generated(rig, ["hello"], {"a": 1.0})


def test_check_compares_it_with_the_model_that_it_is_for(
    tmp_path: Path, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("models", "check", "--model", "causal_lm")
    assert main([*command, str(files["a"])]) == 1
    assert "the LoRA needs its language model: name that folder" in capsys.readouterr().err
    random_model()[0].save_pretrained(tmp_path)
    assert main([*command, str(files["a"]), "--checkpoint", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "layout LoRA: 16 tensors fit (16 F32)\n"
    wrong = {"model.layers.9.mlp.up_proj": (torch.zeros(2, 32), torch.zeros(48, 2))}
    save_file(tensors_of(wrong), tmp_path / "style.safetensors")
    path = str(tmp_path / "style.safetensors")
    assert main([*command, path, "--checkpoint", str(tmp_path)]) == 1
    assert (
        "tensors that the model does not have (1): model.model.layers.9.mlp.up_proj"
        in capsys.readouterr().out
    )
