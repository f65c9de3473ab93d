"""Whether a checkpoint fits, and which of the installed models: only headers are read for it."""

from pathlib import Path
from typing import Protocol, cast

from reverie.models.checkpoints import CheckpointReport
from reverie.models.errors import CheckpointError, ModelError, UnknownModelError
from reverie.models.lora import is_lora
from reverie.models.registry import ModelFamily, find_family, installed_families


class ChecksCheckpoints(Protocol):
    """A family that can look at a checkpoint without loading it."""

    def check(self, path: str) -> CheckpointReport:
        """Return how the checkpoint fits; raise `CheckpointError` when it is none."""


class ChecksAdapters(Protocol):
    """A family that can look at a LoRA without loading it."""

    def check_adapter(self, path: str, base: str | None) -> CheckpointReport:
        """Return how a LoRA fits the checkpoint `base`; None: the published sizes."""


def checked(model: str, path: str, base: str | None = None) -> CheckpointReport:
    """Compare a checkpoint, or a LoRA, with the family called `model`.

    Args:
        model: which family.
        path: a folder or a file.
        base: of a LoRA, the checkpoint that it is for.

    Raises:
        UnknownModelError: there is no such family, or it cannot look at checkpoints.
        CheckpointError: there is no checkpoint that it knows.
    """
    return _look(model, find_family(model), path, base)


def recognised(path: str, base: str | None = None) -> tuple[str, CheckpointReport]:
    """Find the installed model that a checkpoint, or a LoRA, is of; return its name and the report.

    Of several the one that it fits, or else that which knows most of its tensors.

    Raises:
        CheckpointError: it is of none; says why of each, and how to name one.
    """
    if not Path(path).exists():
        raise CheckpointError(f"{path}: no such file or folder")
    part = "check_adapter" if is_lora(Path(path)) else "check"
    found: list[tuple[str, CheckpointReport]] = []
    refused: list[str] = []
    for name in sorted(installed_families()):
        try:
            family = find_family(name)
            if not hasattr(family, part):
                continue  # it has weights of its own, or takes no LoRA
            report = _look(name, family, path, base)
        except ModelError as error:
            refused.append(f"  {name}: {error}")
        except Exception as error:  # a stranger's check may raise anything
            refused.append(f"  {name}: {type(error).__name__}: {error}")
        else:
            if report.matched:
                found.append((name, report))
            else:
                refused.append(f"  {name}: {'; '.join(report.lines())}")
    if not found:
        none = f"no installed model can serve {path} as it is (--model NAME asks one alone):"
        raise CheckpointError("\n".join([none, *refused]))
    return max(found, key=lambda one: (one[1].fits, one[1].matched))


def _look(model: str, family: ModelFamily, path: str, base: str | None) -> CheckpointReport:
    if is_lora(Path(path)):
        if not hasattr(family, "check_adapter"):
            raise UnknownModelError(f"model {model!r} takes no LoRA, which {path} is")
        return cast(ChecksAdapters, family).check_adapter(path, base)
    if not hasattr(family, "check"):
        raise UnknownModelError(f"model {model!r} cannot check a checkpoint; --model names another")
    return cast(ChecksCheckpoints, family).check(path)
