"""Weights of a type that is none by itself are refused by type: never cast without a word."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from lora_files import pairs_for, tensors_of
from safetensors.torch import load_file, save_file
from tiny_lm import TinyLm
from torch import Tensor, nn
from wan_folders import original, self_forcing, write_rest

from reverie.cli import main
from reverie.models.causal_lm.checkpoint.loading import random_model
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import AdapterOption, LoadOptions
from reverie.models.number_types import type_faults
from reverie.models.services.checkpoints import StoredTensor, inspect
from reverie.models.wan.spec import Wan

Change = Callable[[Tensor], Tensor]


def whole(weight: Tensor) -> Tensor:
    return (weight * 40).round().to(torch.int8)


def twofold(weight: Tensor) -> Tensor:
    return weight.to(torch.complex64)


def narrow(weight: Tensor) -> Tensor:
    return weight.to(torch.float8_e4m3fn)


def changed(path: Path, change: Change, name: str = "") -> str:
    """Change one tensor of a file; return its name."""
    held = load_file(path)
    name = name or next(key for key in sorted(held) if held[key].ndim > 1)
    save_file({**held, name: change(held[name])}, path)
    return name


def wan(folder: Path) -> Path:
    original(folder)
    write_rest(folder)
    return folder


def language_model(folder: Path) -> Path:
    model, tokenizer = random_model()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


PARTS: dict[str, tuple[Callable[[Path], Path], str, Callable[[], Any]]] = {
    "transformer": (wan, "diffusion_pytorch_model.safetensors", Wan),
    "VAE": (wan, "vae/diffusion_pytorch_model.safetensors", Wan),
    "text encoder": (wan, "text_encoder/model.safetensors", Wan),
    "language model": (language_model, "model.safetensors", TinyLm),
}


@pytest.mark.parametrize("part", PARTS)
def test_whole_numbers_without_scales_are_refused_by_check_and_by_load(
    part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write, file, family = PARTS[part]
    name = changed(write(tmp_path) / file, whole)
    assert main(["models", "check", str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert f"tensors with an unsupported type (1): {name} is I8" in told.out + told.err
    options = LoadOptions(device="cpu", checkpoint=str(tmp_path), sessions=1)
    with pytest.raises(CheckpointError, match=r"is I8 \(quantised and complex weights"):
        family().load(options)


def test_complex_numbers_in_a_torch_file_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    self_forcing(tmp_path)
    write_rest(tmp_path)
    path = tmp_path / "self_forcing_dmd.pt"
    held = torch.load(path, weights_only=True)
    for name in ("model.blocks.0.ffn.0.weight", "model.head.head.bias"):
        held["generator_ema"][name] = twofold(held["generator_ema"][name])
    torch.save(held, path)
    assert main(["models", "check", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert (
        "tensors with an unsupported type (2): blocks.0.ffn.0.weight is complex64, head.head"
        in told
    )
    with pytest.raises(CheckpointError, match="complex64"):
        Wan().load(LoadOptions(device="cpu", checkpoint=str(tmp_path), sessions=1))


def test_narrow_floating_point_numbers_are_read_as_what_they_are(tmp_path: Path) -> None:
    folder = wan(tmp_path)
    path = folder / "diffusion_pytorch_model.safetensors"
    wanted = narrow(load_file(path)["blocks.0.ffn.0.weight"]).float()
    changed(path, narrow, "blocks.0.ffn.0.weight")
    assert main(["models", "check", str(folder)]) == 0
    family = Wan()
    instance = family.load(LoadOptions(device="cpu", checkpoint=str(folder), sessions=1))
    made = family._components[instance.name].transformer.state_dict()["blocks.0.ffn.0.weight"]
    assert torch.equal(made, wanted)


def test_a_lora_of_whole_numbers_is_refused(tmp_path: Path) -> None:
    model, _ = random_model()
    pairs = tensors_of(pairs_for(model, ("model.layers.0.self_attn.q_proj",), 1))
    save_file({name: whole(half) for name, half in pairs.items()}, tmp_path / "lora.safetensors")
    adapter = AdapterOption("one", str(tmp_path / "lora.safetensors"))
    options = LoadOptions(device="cpu", checkpoint="random", sessions=1, adapters=(adapter,))
    with pytest.raises(CheckpointError, match=r"tensors with an unsupported type \(2\): .* is I8"):
        TinyLm().load(options)


def test_what_a_model_counts_with_may_be_whole() -> None:
    class Counting(nn.Module):
        """Has a weight and a counter."""

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(2))
            self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    stored = {
        "weight": StoredTensor((2,), "F32", lambda: torch.zeros(2)),
        "seen": StoredTensor((), "I64", lambda: torch.zeros((), dtype=torch.int64)),
    }
    assert inspect("one", stored, Counting()).fits


def test_of_many_some_are_named_and_all_are_counted() -> None:
    [line] = type_faults({f"layer.{number}": "I8" for number in range(9)})
    assert line.startswith("tensors with an unsupported type (9): layer.0 is I8, ")
    assert ", and 5 more (" in line
