"""Adapters that sessions choose: what they add, for which session, and their names in keys."""

import threading
from pathlib import Path

import pytest
import torch
from lora_files import linear, pairs_for, write_peft
from torch import Tensor, nn

from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import AdapterOption
from reverie.models.services.adapters import NO_ADAPTERS, OFF, FittedAdapters, Mix, fit_adapters


def net() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(5)
        return nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 3)).requires_grad_(False)


def prefixed(name: str) -> str:
    return f"net.{name}"


def fitted(
    model: nn.Module, folder: Path, *, merged: bool = False, strength: float = 0.0
) -> FittedAdapters:
    """Serve two adapters, `a` for both layers and `b` for the last."""
    first = write_peft(folder / "a", pairs_for(model, ("0", "2"), seed=1))
    second = write_peft(folder / "b", pairs_for(model, ("2",), seed=2))
    options = (
        AdapterOption("a", str(first), merged, strength),
        AdapterOption("b", str(second), merged, strength),
    )
    return fit_adapters(options, {"net": model}, prefixed)


def plain(model: nn.Module, x: Tensor, mix: Mix) -> Tensor:
    """Compute with weights that are summed up by hand, alpha being twice the rank."""
    weights = {path: linear(model, path).weight.clone() for path in ("0", "2")}
    seeds = {"a": (1, ("0", "2")), "b": (2, ("2",))}
    for name, strength in mix:
        seed, paths = seeds[name]
        for path, (down, up) in pairs_for(model, paths, seed).items():
            weights[path] = weights[path] + 2 * strength * up @ down
    bias = {path: linear(model, path).bias for path in ("0", "2")}
    low = nn.functional.gelu(nn.functional.linear(x, weights["0"], bias["0"]))
    return nn.functional.linear(low, weights["2"], bias["2"])


X = torch.linspace(-1, 1, 12).view(2, 6)


class TestBeside:
    """Chosen while it runs."""

    @pytest.mark.parametrize("mix", [(("a", 1.0),), (("a", 0.5), ("b", 2.0)), (("b", 1.5),)])
    def test_a_mix_computes_what_the_summed_weights_compute(self, mix: Mix, tmp_path: Path) -> None:
        model = net()
        adapters = fitted(model, tmp_path).selectable
        with adapters.applied(mix):
            made = model(X)
        torch.testing.assert_close(made, plain(model, X, mix), atol=1e-5, rtol=1e-5)

    def test_without_a_mix_nothing_is_changed_to_the_last_bit(self, tmp_path: Path) -> None:
        model = net()
        before = model(X)
        adapters = fitted(model, tmp_path).selectable
        with adapters.applied((("a", 1.0),)):
            assert not torch.equal(model(X), before)
        assert torch.equal(model(X), before)
        with adapters.applied(OFF):
            assert torch.equal(model(X), before)

    def test_a_mix_is_that_of_its_thread(self, tmp_path: Path) -> None:
        model = net()
        adapters = fitted(model, tmp_path).selectable
        heard: list[Tensor] = []
        with adapters.applied((("a", 1.0),)):
            other = threading.Thread(target=lambda: heard.append(model(X)))
            other.start()
            other.join(20)
        assert torch.equal(heard[0], net()(X))

    def test_a_mix_ends_with_its_block_even_when_that_fails(self, tmp_path: Path) -> None:
        model = net()
        adapters = fitted(model, tmp_path).selectable
        with pytest.raises(RuntimeError), adapters.applied((("a", 1.0),)):
            model(X[:, :1])
        assert torch.equal(model(X), net()(X))


class TestMix:
    """Strengths as a value."""

    def test_parameters_that_are_not_named_stay(self, tmp_path: Path) -> None:
        adapters = fitted(net(), tmp_path).selectable
        one = adapters.mix({"lora_b": 1.0, "other": 3.0})
        assert one == (("b", 1.0),)
        assert adapters.mix({"lora_a": 0.5}, one) == (("a", 0.5), ("b", 1.0))
        assert adapters.mix({"lora_b": 0.0}, one) == OFF

    def test_versions_tell_strengths_and_contents_apart(self, tmp_path: Path) -> None:
        adapters = fitted(net(), tmp_path).selectable
        [one] = adapters.versions((("a", 0.1),))
        [other] = adapters.versions((("a", 0.1000000001),))
        assert one != other
        assert one.startswith("a@0.1:")
        assert adapters.versions((("a", 1.0),), "text") == ()

    def test_an_operator_decides_range_and_beginning(self, tmp_path: Path) -> None:
        model = net()
        path = write_peft(tmp_path, pairs_for(model, ("0",), seed=1))
        option = AdapterOption("a", str(path), strength=0.25, most=1.5)
        [spec] = fit_adapters((option,), {"net": model}, prefixed).selectable.parameters
        assert (spec.name, spec.default, spec.low, spec.high) == ("lora_a", 0.25, 0.0, 1.5)


class TestMerged:
    """Part of the weights."""

    def test_it_computes_what_it_computes_beside(self, tmp_path: Path) -> None:
        model = net()
        found = fitted(model, tmp_path, merged=True, strength=0.5)
        wanted = plain(net(), X, (("a", 0.5), ("b", 0.5)))
        torch.testing.assert_close(model(X), wanted, atol=1e-5, rtol=1e-5)
        assert not found.selectable

    def test_the_weights_have_another_version(self, tmp_path: Path) -> None:
        half = fitted(net(), tmp_path, merged=True, strength=0.5).version("w")
        whole = fitted(net(), tmp_path, merged=True, strength=1.0).version("w")
        assert len({half, whole, FittedAdapters(NO_ADAPTERS).version("w")}) == 3

    def test_so_have_weights_that_another_file_is_served_beside(self, tmp_path: Path) -> None:
        first = fitted(net(), tmp_path).version("w")
        assert first == fitted(net(), tmp_path).version("w")
        assert first != FittedAdapters(NO_ADAPTERS).version("w")


class TestFitting:
    """All of them, or nothing."""

    @pytest.mark.parametrize("merged", [False, True], ids=["selectable", "merged"])
    def test_numbers_that_are_not_finite_are_refused(self, merged: bool, tmp_path: Path) -> None:
        model = net()
        pairs = pairs_for(model, ("0",), seed=1)
        pairs["0"][0][0, 0] = float("nan")
        option = AdapterOption("a", str(write_peft(tmp_path, pairs)), merged, 1.0)
        with pytest.raises(CheckpointError, match="not finite"):
            fit_adapters((option,), {"net": model}, prefixed)
        assert torch.equal(model(X), net()(X))

    def test_a_file_that_is_not_there_is_named_with_its_adapter(self, tmp_path: Path) -> None:
        option = AdapterOption("ink", str(tmp_path / "ink.pt"))
        with pytest.raises(CheckpointError, match=r"adapter ink: .*no such file or folder"):
            fit_adapters((option,), {"net": net()}, prefixed)

    def test_nothing_is_merged_when_another_one_does_not_fit(self, tmp_path: Path) -> None:
        model = net()
        good = write_peft(tmp_path / "a", pairs_for(model, ("0",), seed=1))
        other = nn.ModuleDict({"9": nn.Linear(6, 5)})
        bad = write_peft(tmp_path / "b", pairs_for(other, ("9",), seed=1))
        options = (
            AdapterOption("a", str(good), merged=True, strength=1.0),
            AdapterOption("b", str(bad)),
        )
        with pytest.raises(
            CheckpointError,
            match=r"adapter b: .* tensors that the model does not have \(1\): net\.9",
        ):
            fit_adapters(options, {"net": model}, prefixed)
        assert torch.equal(model(X), net()(X))
