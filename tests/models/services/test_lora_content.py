"""LoRA files that hold more than pairs, or more than one adapter."""

import json
from pathlib import Path

import pytest
import torch
from lora_files import Pairs, pairs_for, tensors_of, write_peft
from safetensors.torch import save_file
from torch import Tensor, nn

from reverie.cli import main
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import AdapterOption
from reverie.models.services.adapters import FittedAdapters, fit_adapters
from reverie.models.services.lora_files import is_lora, read_lora

TWO = Path(__file__).parent.parent.parent / "inputs" / "two_adapters.pt"
Q = "blocks.0.self_attn.q"


class Net(nn.Module):
    """Layers of several kinds, and a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.pixels = nn.Conv1d(2, 6, 1)
        self.first = nn.Linear(6, 4)
        self.norm = nn.LayerNorm(4)
        self.second = nn.Linear(4, 3)
        self.shift = nn.Parameter(torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        seen: Tensor = self.pixels(x).transpose(1, 2)
        made: Tensor = self.second(self.norm(self.first(seen))) + self.shift
        return made


def net() -> Net:
    torch.manual_seed(3)
    return Net()


DIFFERENCES = {
    "pixels.diff": (6, 2, 1),
    "pixels.diff_b": (6,),
    "first.diff_b": (4,),
    "norm.diff": (4,),
    "norm.diff_b": (4,),
    "second.diff": (3, 4),
}


def changed(tensors: dict[str, Tensor], strength: float) -> Net:
    """Return the net with differences added by hand."""
    model = net()
    with torch.no_grad():
        for name, difference in tensors.items():
            path, _, kind = name.rpartition(".")
            own = {"diff": ".weight", "diff_b": ".bias"}[kind]
            own = path if path == "shift" else f"{path}{own}"
            model.get_parameter(own).add_(difference * strength)
    return model


def differences(**more: tuple[int, ...]) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(7)
    shapes = DIFFERENCES | {f"{name}.diff": shape for name, shape in more.items()}
    return {name: torch.randn(shape, generator=random) for name, shape in shapes.items()}


def fitted(path: Path, model: Net, *, merged: bool, strength: float = 0.0) -> FittedAdapters:
    option = AdapterOption("fast", str(path), merged, strength)
    return fit_adapters((option,), {"net": model}, lambda name: f"net.{name}")


@pytest.fixture
def x() -> Tensor:
    return torch.randn(2, 2, 5, generator=torch.Generator().manual_seed(1))


class TestDifferences:
    """`.diff` and `.diff_b`: a whole parameter grows."""

    def test_merged_they_are_added_to_every_kind_of_parameter(
        self, x: Tensor, tmp_path: Path
    ) -> None:
        tensors = differences(shift=(3,))
        save_file(tensors, tmp_path / "fast.safetensors")
        model = net()
        fitted(tmp_path / "fast.safetensors", model, merged=True, strength=0.5)
        torch.testing.assert_close(model(x), changed(tensors, 0.5)(x))

    @pytest.mark.parametrize("strength", [1.0, 0.25])
    def test_beside_a_model_they_give_what_merging_gives(
        self, strength: float, x: Tensor, tmp_path: Path
    ) -> None:
        tensors = differences()
        save_file(tensors, tmp_path / "fast.safetensors")
        model = net()
        before = model(x)
        beside = fitted(tmp_path / "fast.safetensors", model, merged=False).selectable
        with beside.applied((("fast", strength),)):
            made = model(x)
        torch.testing.assert_close(made, changed(tensors, strength)(x))
        assert torch.equal(model(x), before)

    def test_pairs_and_differences_of_one_layer_are_both_added(
        self, x: Tensor, tmp_path: Path
    ) -> None:
        pairs = pairs_for(net(), ("first",), seed=1)
        bias = {"first.diff_b": torch.ones(4)}
        save_file(tensors_of(pairs, "") | bias, tmp_path / "fast.safetensors")
        wanted = changed(bias, 1.0)
        down, up = pairs["first"]
        with torch.no_grad():
            wanted.first.weight.add_(up @ down)
        for merged in (True, False):
            model = net()
            found = fitted(tmp_path / "fast.safetensors", model, merged=merged, strength=1.0)
            with found.selectable.applied(() if merged else (("fast", 1.0),)):
                torch.testing.assert_close(model(x), wanted(x))

    def test_the_bias_of_a_second_half_is_scaled_like_the_pair(
        self, x: Tensor, tmp_path: Path
    ) -> None:
        pairs = pairs_for(net(), ("first",), seed=1)
        folder = write_peft(tmp_path, pairs, {"lora_bias": True})
        tensors = tensors_of(pairs)
        tensors["base_model.model.first.lora_B.bias"] = torch.ones(4)
        save_file(tensors, folder / "adapter_model.safetensors")
        down, up = pairs["first"]
        wanted = net()
        with torch.no_grad():
            wanted.first.weight.add_(2 * up @ down)
            wanted.first.bias.add_(2.0)
        model = net()
        fitted(folder, model, merged=True, strength=1.0)
        torch.testing.assert_close(model(x), wanted(x))

    def test_a_parameter_without_a_layer_of_its_own_can_only_be_merged(
        self, tmp_path: Path
    ) -> None:
        save_file(differences(shift=(3,)), tmp_path / "fast.safetensors")
        words = r"adapter fast: shift\.diff can only be merged \(--lora-merged PATH\)"
        with pytest.raises(CheckpointError, match=words):
            fitted(tmp_path / "fast.safetensors", net(), merged=False)

    def test_those_that_do_not_fit_are_named(self, tmp_path: Path) -> None:
        tensors = differences() | {"norm.diff": torch.zeros(5), "third.diff": torch.zeros(1)}
        tensors["second.diff_b"] = torch.zeros(3, dtype=torch.int32)
        save_file(tensors, tmp_path / "fast.safetensors")
        report = read_lora(tmp_path / "fast.safetensors").inspect(net())
        assert report.unmatched == ("third.weight",)
        assert report.misshapen == (
            "norm.diff is [5], not [4]",
            "second.diff_b is I32, not a floating type",
        )

    def test_numbers_that_are_not_finite_are_refused(self, tmp_path: Path) -> None:
        tensors = {"norm.diff": torch.full((4,), float("nan"))}
        save_file(tensors, tmp_path / "fast.safetensors")
        for merged in (True, False):
            with pytest.raises(CheckpointError, match=r"norm.*not finite"):
                fitted(tmp_path / "fast.safetensors", net(), merged=merged, strength=1.0)


class TestSeveral:
    """Two adapters in one file are never mixed."""

    def test_the_file_is_refused_with_both_names(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["models", "check", str(TWO)]) == 1
        told = capsys.readouterr().err
        assert "two_adapters.pt contains 2 adapters, critic and student: choose one" in told
        assert "--lora critic=" in told

    @pytest.mark.parametrize("name", ["student", "critic"])
    def test_one_is_taken_by_its_name(self, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["models", "check", str(TWO), "--adapter", name]) == 0
        assert "2 tensors fit" in capsys.readouterr().out
        held = torch.load(TWO, weights_only=True)
        half = f"base_model.model.{Q}.lora_{{}}.{name}.weight"
        wanted = held[half.format("B")] @ held[half.format("A")]
        file = read_lora(TWO, adapter=name)
        torch.testing.assert_close(file.pairs[Q].change(1.0), wanted)

    def test_they_are_different_versions(self) -> None:
        assert read_lora(TWO, adapter="student").version != read_lora(TWO, adapter="critic").version

    def test_a_name_that_neither_has_takes_none(self) -> None:
        with pytest.raises(CheckpointError, match="contains 2 adapters, critic and student"):
            read_lora(TWO, adapter="ink")

    def test_one_with_a_name_and_one_without_are_two(self, tmp_path: Path) -> None:
        pairs = pairs_for(net(), ("first",), seed=1)
        tensors = tensors_of(pairs, "")
        tensors |= {n.replace(".weight", ".ink.weight"): v.clone() for n, v in tensors.items()}
        save_file(tensors, tmp_path / "x.safetensors")
        with pytest.raises(CheckpointError, match="2 adapters, one without a name and ink"):
            read_lora(tmp_path / "x.safetensors")

    def test_an_only_one_is_taken_whatever_it_is_called(self, tmp_path: Path) -> None:
        tensors = tensors_of(pairs_for(net(), ("first",), seed=1), "")
        named = {n.replace(".weight", ".default.weight"): v for n, v in tensors.items()}
        save_file(named, tmp_path / "x.safetensors")
        assert list(read_lora(tmp_path / "x.safetensors", adapter="ink").pairs) == ["first"]

    def test_two_spellings_of_one_half_are_refused_by_both(self, tmp_path: Path) -> None:
        tensors = tensors_of(pairs_for(net(), ("first",), seed=1), "")
        tensors["first.lora_down.weight"] = torch.zeros(2, 6)
        save_file(tensors, tmp_path / "x.safetensors")
        words = r"first\.lora_A\.weight and first\.lora_down\.weight are the same half"
        with pytest.raises(CheckpointError, match=words):
            read_lora(tmp_path / "x.safetensors")


class TestFolders:
    """What diffusers saves."""

    def test_a_folder_of_diffusers_is_read(self, tmp_path: Path) -> None:
        pairs: Pairs = pairs_for(net(), ("first",), seed=1)
        told = json.dumps({"transformer.r": 2, "transformer.lora_alpha": 6})
        path = tmp_path / "pytorch_lora_weights.safetensors"
        save_file(tensors_of(pairs, ""), path, {"lora_adapter_metadata": told})
        assert is_lora(tmp_path)
        assert read_lora(tmp_path).pairs["first"].scale == 3.0

    def test_two_kinds_in_one_folder_are_refused_by_both(self, tmp_path: Path) -> None:
        pairs = pairs_for(net(), ("first",), seed=1)
        write_peft(tmp_path, pairs)
        save_file(tensors_of(pairs, ""), tmp_path / "pytorch_lora_weights.safetensors")
        words = r"2 LoRAs, adapter_model\.safetensors and pytorch_lora_weights\.safetensors"
        with pytest.raises(CheckpointError, match=words):
            read_lora(tmp_path)

    def test_settings_of_two_parts_that_differ_are_refused(self, tmp_path: Path) -> None:
        told = {"transformer.lora_alpha": 6, "text_encoder.lora_alpha": 8}
        path = tmp_path / "x.safetensors"
        about = {"lora_adapter_metadata": json.dumps(told)}
        save_file(tensors_of(pairs_for(net(), ("first",), seed=1), ""), path, about)
        with pytest.raises(
            CheckpointError, match="lora_alpha is 8 for text_encoder, but 6 elsewhere"
        ):
            read_lora(path)
