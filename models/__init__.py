"""Models: the contract, services that families share, and a folder for each family.

Start at `contract/loop.py` for the contract, at `frame_generator.py` for the short way to a model,
and at `pocket/` for a whole one. This package never imports `engine`, `gpu_pool`, `sessions`, `rtc`
or `media`.
"""

from typing import TYPE_CHECKING, Any

from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import Idle, LoopKernel, StepBatch, StepResult, StepUnit, WorkPlan
from reverie.models.contract.registry import ModelFamily, find_family
from reverie.models.contract.spec import LoopSpec, ModelSpec, ProgramSpec

if TYPE_CHECKING:
    from reverie.models.frame_generator import FrameGenerator, FrameGeneratorFamily

__all__ = [
    "FrameGenerator",
    "FrameGeneratorFamily",
    "Idle",
    "LoadOptions",
    "LoopKernel",
    "LoopSpec",
    "ModelFamily",
    "ModelInstance",
    "ModelSpec",
    "ProgramSpec",
    "StepBatch",
    "StepResult",
    "StepUnit",
    "WorkPlan",
    "find_family",
]


def __getattr__(name: str) -> Any:
    """Load what computes when it is first used: a server needs the contract, and no torch."""
    if name not in ("FrameGenerator", "FrameGeneratorFamily"):
        raise AttributeError(f"module 'reverie.models' has no attribute {name!r}")
    from reverie.models import frame_generator

    return getattr(frame_generator, name)
