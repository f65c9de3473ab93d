"""The driver: one session's loop, from a merged control to frames that go out.

API SKELETON: signatures are final, bodies follow.

Plain synchronous code on the worker's step thread. It has no clock and does no I/O: time comes in
as an argument (microseconds of any monotonic clock, always the same one), what it has to tell
collects until `take_emissions`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from reverie.engine.emissions import Emission
from reverie.engine.inputs import ControlInput
from reverie.models.instance import ModelInstance
from reverie.models.loop import Durable, LoopKernel, LoopRequest, S, StepResult, StepUnit, WorkPlan


@dataclass(frozen=True, slots=True)
class DriverOptions:
    """How a driver treats its session.

    Attributes:
        lead_chunks: chunks that may be put out and not yet seen (`ProgramSpec.lead_chunks`).
        history_chunks: how far back a rewind can go (`LoadOptions.history_chunks`).
        snapshot_every_us: media time between two `SnapshotOut`; the first comes after one chunk.
        snapshots: snapshots that a session may keep by name.
        trace: whether every unit is told of in a `StepTrace`.
    """

    lead_chunks: int = 1
    history_chunks: int = 8
    snapshot_every_us: int = 2_000_000
    snapshots: int = 8
    trace: bool = False


@dataclass(frozen=True, slots=True)
class Position:
    """Where a session stands: the last chunk behind it (-1 before the first), and the media time
    at which the next frame will begin. For `Done`."""

    chunk: int
    pts_us: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit that could run now.

    Attributes:
        deadline_us: when the viewer runs out of frames.
        running: whether its chunk is already in the making, or has viewers waiting.
    """

    session: str
    plan: WorkPlan
    deadline_us: int
    running: bool


class LoopDriver(Generic[S]):
    """Drives one loop of one session. See `batch.run_batch` for who calls `begin` and the rest."""

    def __init__(
        self,
        kernel: LoopKernel[S],
        instance: ModelInstance,
        request: LoopRequest,
        options: DriverOptions = DriverOptions(),
        *,
        durable: Durable | None = None,
        chunks: int = 0,
        pts_us: int = 0,
    ) -> None:
        """Begin anew, or go on from `durable` after `chunks` chunks and at `pts_us`."""
        raise NotImplementedError

    @property
    def session(self) -> str: raise NotImplementedError

    @property
    def position(self) -> Position: raise NotImplementedError

    @property
    def paused(self) -> bool: raise NotImplementedError

    @property
    def ended(self) -> bool:
        """Whether the loop has failed for good or was closed: `ready` will only say None."""
        raise NotImplementedError

    def take_emissions(self) -> list[Emission]:
        """Return what has happened since the last call, in order, and forget it."""
        raise NotImplementedError

    # what comes from the session

    def push(self, inputs: Sequence[ControlInput]) -> None:
        """Put controls into the mailbox. Raises UnknownControlError before any is taken."""
        raise NotImplementedError

    def release_keys(self) -> None: raise NotImplementedError
    def seen(self, chunk: int, now_us: int) -> None: raise NotImplementedError
    def watched(self, watched: bool) -> None: raise NotImplementedError
    def pause(self) -> Position: raise NotImplementedError
    def resume(self) -> Position: raise NotImplementedError
    def advance(self, chunks: int) -> Position: raise NotImplementedError
    def interrupt(self, seen: int | None) -> Position: raise NotImplementedError
    def rewind(self, chunk: int) -> Position: raise NotImplementedError
    def reset(self, seed: int | None = None) -> Position: raise NotImplementedError
    def snapshot(self, name: str) -> Position: raise NotImplementedError
    def restore(self, name: str) -> Position: raise NotImplementedError
    def close(self) -> Position:
        """End the loop and give every block back. May be called twice."""
        raise NotImplementedError

    # what the step thread does with it

    def ready(self, now_us: int) -> Candidate | None:
        """Say what could run now; None while held, paused, idle, unwatched or ended."""
        raise NotImplementedError

    def begin(self) -> StepUnit[S]:
        """Take controls and blocks for the unit that `ready` named."""
        raise NotImplementedError

    def complete(self, result: StepResult[S], started_us: int, ended_us: int, batch: int) -> None:
        """Check the result; adopt it, or roll back."""
        raise NotImplementedError

    def fail(self, error: Exception, now_us: int) -> None:
        """Roll the unit back that was begun; end the loop when it fails for the second time."""
        raise NotImplementedError
