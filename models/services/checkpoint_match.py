"""Which installed model a checkpoint belongs to, and whether it fits; only headers are read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from reverie.models.contract.errors import (
    CheckpointError,
    ModelError,
    OptionError,
    UnknownModelError,
)
from reverie.models.contract.registry import ModelFamily, find_family, installed_families
from reverie.models.services.checkpoint_report import CheckpointReport
from reverie.models.services.lora_files import is_lora
from reverie.models.services.weight_files import refuse_no_weights


class CheckpointChecker(Protocol):
    """A family that can check a checkpoint without loading it."""

    def check(self, path: str) -> CheckpointReport:
        """Return how the checkpoint fits; raise `CheckpointError` when it is not one."""


class PartsChecker(Protocol):
    """A family whose checkpoints may lie in two places."""

    def check(self, path: str, parts: str | None = None) -> CheckpointReport:
        """Return how the checkpoint fits, with the folder of its other parts."""


class AdapterChecker(Protocol):
    """A family that can check a LoRA without loading it."""

    def check_adapter(
        self, path: str, base: str | None, adapter: str | None = None
    ) -> CheckpointReport:
        """Return how a LoRA fits the checkpoint `base`; None: the published sizes.

        `adapter` names the one to take of a file with several.
        """


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """A checkpoint or a LoRA to check.

    Attributes:
        path: a folder or a file.
        parts: of a checkpoint, the folder of the other files that it needs; None: its own.
        base: of a LoRA, the checkpoint that it adapts.
        adapter: of a file with several LoRAs, the name of one.
    """

    path: str
    parts: str | None = None
    base: str | None = None
    adapter: str | None = None


def check(model: str, request: CheckRequest) -> CheckpointReport:
    """Compare a checkpoint, or a LoRA, with the family called `model`.

    Raises:
        UnknownModelError: there is no such family, or it cannot check checkpoints.
        CheckpointError: there is no checkpoint in a layout that it knows.
    """
    return _look(model, find_family(model), request)


def recognise(request: CheckRequest) -> tuple[str, CheckpointReport]:
    """Find the installed model of a checkpoint, or of a LoRA; return its name and the report.

    Of several models it is the one that fits, or else the one that has most of the tensors.

    Raises:
        CheckpointError: no model matches; says why for each, and how to name one.
    """
    path = Path(request.path)
    if not path.exists():
        raise CheckpointError(f"{path}: no such file or folder")
    if path.is_file():
        refuse_no_weights(path)
    part = "check_adapter" if is_lora(path) else "check"
    found: list[tuple[str, CheckpointReport]] = []
    refused: list[str] = []
    for name in sorted(installed_families()):
        try:
            family = find_family(name)
            if not hasattr(family, part):
                continue  # it ships its weights, or takes no LoRA
            report = _look(name, family, request)
        except ModelError as error:
            refused.append(f"  {name}: {error}")
        except Exception as error:  # a third party's check may raise anything
            refused.append(f"  {name}: {type(error).__name__}: {error}")
        else:
            if report.matched:
                found.append((name, report))
            else:
                refused.append(f"  {name}: {'; '.join(report.lines())}")
    if not found:
        none = f"no installed model can serve {path} (--model NAME checks one model alone):"
        raise CheckpointError("\n".join([none, *refused]))
    return max(found, key=lambda one: (one[1].fits, one[1].matched))


def _look(model: str, family: ModelFamily, request: CheckRequest) -> CheckpointReport:
    if is_lora(Path(request.path)):
        if not hasattr(family, "check_adapter"):
            raise UnknownModelError(
                f"{request.path} is a LoRA, which model {model!r} does not support"
            )
        checks = cast(AdapterChecker, family)
        named = () if request.adapter is None else (request.adapter,)
        return checks.check_adapter(request.path, request.base, *named)
    if not hasattr(family, "check"):
        raise UnknownModelError(
            f"model {model!r} cannot check checkpoints; name another with --model"
        )
    if request.parts is None:
        return cast(CheckpointChecker, family).check(request.path)
    if not family.spec.has_parts:
        raise OptionError(f"--parts: checkpoints of {model} are in one folder")
    return cast(PartsChecker, family).check(request.path, request.parts)
