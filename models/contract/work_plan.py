"""A planned unit of work: its kind, what it does, and which others may share its forward pass."""

from dataclasses import dataclass
from typing import TypedDict, Unpack

from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop_spec import LoopSpec


@dataclass(frozen=True, slots=True)
class BatchKey:
    """Units with equal keys may run in one forward pass."""

    instance: str
    weights_version: str
    loop: str
    kind: str
    shape: tuple[int, ...] = ()
    precision: str = "float32"
    adapters: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        instance: ModelInstance,
        loop: str,
        kind: str,
        shape: tuple[int, ...] = (),
        adapters: tuple[str, ...] = (),
    ) -> "BatchKey":
        """Return the key of units of `kind` that run on an instance as it is now.

        Args:
            instance: what they run on.
            loop: whose units they are.
            kind: of the units.
            shape: what else must be equal.
            adapters: the active ones and their strengths, as `Adapters.versions` returns them.
        """
        return cls(
            instance.name,
            instance.weights_version,
            loop,
            kind,
            shape,
            str(instance.dtype),
            adapters=adapters,
        )


class PlanOptions(TypedDict, total=False):
    """The fields of a `WorkPlan` that say what its unit does; see there."""

    writes: int
    streams: tuple[str, ...]
    takes_controls: bool
    commits: bool
    shows: bool


@dataclass(frozen=True, slots=True)
class WorkPlan:
    """One unit of work that has not run yet.

    Attributes:
        kind: `denoise`, `decode`, `context`, `encode_text`, ...
        batch_key: which other units it may share a forward pass with.
        writes: cache blocks that it fills; they are reserved before it is admitted.
        streams: output streams that it feeds.
        takes_controls: the controls given to `plan_step` act from this unit on; they then come
            back in `StepUnit.controls`. False leaves them waiting.
        commits: its end makes the chunk part of the session.
        shows: its end puts out the last frame of the chunk; a rewind can return to here.
    """

    kind: str
    batch_key: BatchKey
    writes: int = 0
    streams: tuple[str, ...] = ()
    takes_controls: bool = False
    commits: bool = False
    shows: bool = False

    @classmethod
    def of(
        cls,
        instance: ModelInstance,
        loop: LoopSpec,
        kind: str,
        shape: tuple[int, ...] = (),
        adapters: tuple[str, ...] = (),
        **options: Unpack[PlanOptions],
    ) -> "WorkPlan":
        """Plan a unit of `kind`; the arguments are those of `BatchKey.of`, and other fields."""
        key = BatchKey.of(instance, loop.name, kind, shape, adapters)
        return cls(kind, key, **options)


@dataclass(frozen=True, slots=True)
class Idle:
    """There is nothing to do until a control arrives; `reason` is for traces."""

    reason: str
