"""Which installed model a checkpoint is of, and what it lacks."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from stub_model import StubFamily

from reverie.models.contract.errors import CheckpointError, UnknownModelError
from reverie.models.contract.registry import ModelFamily
from reverie.models.services import checkpoint_match
from reverie.models.services.checkpoint_match import CheckRequest, check, recognise
from reverie.models.services.checkpoint_report import CheckpointReport


def report(matched: int, *missing: str) -> CheckpointReport:
    return CheckpointReport("stub", matched, (), missing, (), {})


class Knowing(StubFamily):
    """Knows any checkpoint, more or less."""

    def check(self, path: str) -> CheckpointReport:
        return report(3)


class HalfKnowing(StubFamily):
    """Knows more of its tensors, and misses one."""

    def check(self, path: str) -> CheckpointReport:
        return report(9, "head")


class Lost(StubFamily):
    """Fails with an unexpected error."""

    def check(self, path: str) -> CheckpointReport:
        raise ZeroDivisionError("by zero")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], ModelFamily]]:
    found: dict[str, Callable[[], ModelFamily]] = {}
    monkeypatch.setattr(checkpoint_match, "installed_families", lambda: found)
    monkeypatch.setattr("reverie.models.contract.registry.installed_families", lambda: found)
    return found


def test_of_several_the_one_that_fits_is_taken(
    installed: dict[str, Callable[[], ModelFamily]], tmp_path: Path
) -> None:
    installed |= {"a": HalfKnowing, "b": Lost, "c": Knowing, "d": StubFamily}
    assert recognise(CheckRequest(str(tmp_path))) == ("c", report(3))
    del installed["c"]
    assert recognise(CheckRequest(str(tmp_path))) == ("a", report(9, "head"))


def test_one_that_nobody_knows_is_refused_with_everybodys_reason(
    installed: dict[str, Callable[[], ModelFamily]], tmp_path: Path
) -> None:
    installed |= {"b": Lost, "d": StubFamily}
    with pytest.raises(CheckpointError, match=r"--model NAME .*\n  b: ZeroDivisionError: by zero$"):
        recognise(CheckRequest(str(tmp_path)))


def test_a_path_that_is_not_there_is_no_matter_of_models(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no such file or folder$"):
        recognise(CheckRequest(str(tmp_path / "none")))


def test_what_oasis_lacks_is_named_and_its_vae_is_looked_at(tmp_path: Path) -> None:
    save_file({"x": torch.zeros(1)}, tmp_path / "oasis500m.safetensors")
    lacking = ("the VAE (vit-l-20*.safetensors)", "a start picture (*.png)")
    assert check("oasis", CheckRequest(str(tmp_path))).lacking == lacking
    vae = {"y": torch.zeros(1), "decoder.0.norm1.weight": torch.zeros(1024)}
    save_file(vae, tmp_path / "vit-l-20.safetensors")
    Image.new("RGB", (8, 8)).save(tmp_path / "start.png")
    found = check("oasis", CheckRequest(str(tmp_path)))
    over = ("x (oasis500m.safetensors)", "y (vit-l-20.safetensors)")
    assert (found.unmatched, found.lacking) == (over, ())


def test_a_model_that_cannot_look_at_checkpoints_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnknownModelError, match=r"'echo' cannot check checkpoints; name another"):
        check("echo", CheckRequest(str(tmp_path)))
