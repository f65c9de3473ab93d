"""What a session hears from the pool besides the emissions of its driver, and the listener."""

from collections.abc import Callable
from dataclasses import dataclass

from reverie.engine.emissions import Emission


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """The worker died or hung. `SessionRecovered` or `SessionLost` is the next notification."""

    session: str
    reason: str


@dataclass(frozen=True, slots=True)
class SessionRecovered:
    """The session continues in a new worker.

    Attributes:
        chunk: the chunk that its state is after; -1 when it began again from its request.
        pts_us: media time at which the next frame begins.
    """

    session: str
    chunk: int
    pts_us: int


@dataclass(frozen=True, slots=True)
class SessionLost:
    """The session could not be recovered; its slot is free again. Nothing follows."""

    session: str
    code: str
    message: str


Notification = Emission | WorkerLost | SessionRecovered | SessionLost
"""Every emission but `SnapshotOut`, which the pool keeps for itself."""

Sink = Callable[[Notification], None]
"""Called on the event loop, in order; frames have been copied and belong to the session.

Must not block. An exception that it raises is logged and changes nothing.
"""
