"""Merging leaves no trace of what was merged before."""

from pathlib import Path

import pytest
import torch
from lora_files import linear, pairs_for, write_peft
from torch import Tensor, nn

from reverie.models.contract.errors import CheckpointError
from reverie.models.services.lora import LoraFile
from reverie.models.services.lora_files import read_lora
from reverie.models.services.merging import MergedWeights


def net(dtype: torch.dtype = torch.bfloat16) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(5)
        model = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 3))
    return model.to(dtype).requires_grad_(False)


def lora(folder: Path, seed: int, *paths: str) -> LoraFile:
    return read_lora(write_peft(folder / str(seed), pairs_for(net(), paths, seed)))


def weights(model: nn.Module) -> list[Tensor]:
    return [value.clone() for value in model.state_dict().values()]


def same(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("reads", [False, True], ids=["kept", "read again"])
def test_another_choice_leaves_what_it_leaves_on_fresh_weights(reads: bool, tmp_path: Path) -> None:
    a, b = lora(tmp_path, 1, "0", "1"), lora(tmp_path, 2, "1")
    model, stored = net(), net().state_dict()
    merged = MergedWeights(model, (lambda path: stored[f"{path}.weight"]) if reads else None)
    merged.merge([(a, 1.0)])
    merged.merge([(b, 0.3)])
    fresh = net()
    MergedWeights(fresh).merge([(b, 0.3)])
    assert same(weights(model), weights(fresh))
    merged.merge([])
    assert same(weights(model), weights(net()))


def test_several_are_rounded_once(tmp_path: Path) -> None:
    a, b = lora(tmp_path, 1, "0"), lora(tmp_path, 2, "0")
    model = net()
    MergedWeights(model).merge([(a, 1.0), (b, 0.5)])
    whole = linear(net(), "0").weight.float()
    whole = whole + a.pairs["0"].change(1.0) + b.pairs["0"].change(0.5)
    assert torch.equal(linear(model, "0").weight, whole.to(torch.bfloat16))


def test_a_weight_that_two_modules_share_is_not_changed(tmp_path: Path) -> None:
    model = net(torch.float32)
    tied = nn.ModuleDict({"body": model, "words": nn.Embedding(5, 6)})
    tied["words"].weight = linear(model, "0").weight
    path = write_peft(tmp_path, pairs_for(tied, ("body.0",), 1))
    before = weights(tied)
    with pytest.raises(
        CheckpointError, match=r"body\.0\.weight, which shares its weight with words\.weight"
    ):
        MergedWeights(tied).merge([(read_lora(path), 1.0)])
    assert same(weights(tied), before)
