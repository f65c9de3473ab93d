"""What a driver refuses, and what can be wrong with a step.

EngineError
├── RefusedError             the session asked for what cannot be; nothing has changed
│   ├── ChunkNotKeptError    a rewind to a chunk that is no longer (or not yet) kept
│   ├── UnknownSnapshotError there is no snapshot of that name
│   ├── NoSnapshotError      nothing to keep yet, or this loop's state cannot be kept
│   ├── SnapshotLimitError   as many snapshots as a session may have
│   ├── WeightsChangedError  what was kept was made by other weights than there are now
│   ├── UnknownLoopError     the program has no such loop; check it at the edge
│   ├── UnknownControlError  the loop has no such control, key or parameter; check it at the edge
│   └── LoopEndedError       the loop has failed for good, or was closed
├── BadStepError             what a step returned may not be shown; the driver rolls it back
├── RolloutError             a session that a script steers cannot continue
└── AdmissionError           no room for one more session now (let it wait), or ever (at load)
"""

from typing import ClassVar

from reverie.engine.emissions import FaultCode
from reverie.models.contract.loop import Durable


class EngineError(Exception):
    """Base of all errors of this package."""


class EngineRefusedError(EngineError):
    """A request of the session that changed nothing."""

    code: ClassVar[str] = "refused"


class ChunkNotKeptError(EngineRefusedError):
    """The chunk to go back to is not kept."""

    code = "chunk_not_kept"


class UnknownSnapshotError(EngineRefusedError):
    """No snapshot has that name."""

    code = "unknown_snapshot"


class NoSnapshotError(EngineRefusedError):
    """There is nothing that a snapshot could keep."""

    code = "no_snapshot"


class SnapshotLimitError(EngineRefusedError):
    """The session has as many snapshots as it may have."""

    code = "snapshot_limit"


class WeightsChangedError(EngineRefusedError):
    """A state that outlived its worker was made by other weights than the new worker has."""

    code = "weights_changed"

    @classmethod
    def unless_same(cls, durable: Durable, weights_version: str) -> None:
        """Refuse to continue from a state that other weights have made.

        Raises:
            WeightsChangedError: names both versions.
        """
        if durable.weights_version != weights_version:
            made = f"loop {durable.loop} was at work with weights {durable.weights_version}"
            raise cls(f"{made}; these are {weights_version}")


class UnknownLoopError(EngineRefusedError):
    """The program runs no loop of that name."""

    code = "unknown_loop"


class UnknownControlError(EngineRefusedError):
    """The loop takes no such control."""

    code = "unknown_control"


class LoopEndedError(EngineRefusedError):
    """The loop has ended."""

    code = "loop_ended"


class BadStepError(EngineError):
    """A step returned what may not be shown."""

    def __init__(self, code: FaultCode, message: str) -> None:
        """Name the fault for the session's `StepFailed`."""
        super().__init__(message)
        self.code = code


class RolloutError(EngineError):
    """A session that a script steers cannot continue."""


class AdmissionError(EngineError):
    """There is no room for one more session: now, or, when a model is loaded, ever."""
