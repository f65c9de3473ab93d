"""The phases of a session, and the edges between them.

    created -> queued -> active <-> paused -> detached -> closed

    A rejoin leads from detached to active; any of these may fail.

`EDGES` is the whole table. A pair that it does not hold is a fault of this package and raises.
"""

from enum import StrEnum

from reverie.sessions.protocol.errors import IllegalTriggerError


class SessionPhase(StrEnum):
    """The phases of a session."""

    CREATED = "created"
    QUEUED = "queued"
    ACTIVE = "active"
    PAUSED = "paused"
    DETACHED = "detached"
    FAILED = "failed"
    CLOSED = "closed"


class Trigger(StrEnum):
    """What moves a session to another phase."""

    ENQUEUE = "enqueue"
    START = "start"
    PAUSE = "pause"
    RESUME = "resume"
    DETACH = "detach"
    ATTACH = "attach"
    FAIL = "fail"
    CLOSE = "close"


OVER = frozenset({SessionPhase.FAILED, SessionPhase.CLOSED})
"""Phases without an edge to another."""

EDGES: dict[tuple[SessionPhase, Trigger], SessionPhase] = {
    (SessionPhase.CREATED, Trigger.ENQUEUE): SessionPhase.QUEUED,
    (SessionPhase.QUEUED, Trigger.ENQUEUE): SessionPhase.QUEUED,
    (SessionPhase.CREATED, Trigger.START): SessionPhase.ACTIVE,
    (SessionPhase.QUEUED, Trigger.START): SessionPhase.ACTIVE,
    (SessionPhase.ACTIVE, Trigger.PAUSE): SessionPhase.PAUSED,
    (SessionPhase.PAUSED, Trigger.PAUSE): SessionPhase.PAUSED,
    (SessionPhase.PAUSED, Trigger.RESUME): SessionPhase.ACTIVE,
    (SessionPhase.ACTIVE, Trigger.RESUME): SessionPhase.ACTIVE,
    (SessionPhase.ACTIVE, Trigger.DETACH): SessionPhase.DETACHED,
    (SessionPhase.PAUSED, Trigger.DETACH): SessionPhase.DETACHED,
    (SessionPhase.DETACHED, Trigger.ATTACH): SessionPhase.ACTIVE,
    **{(phase, Trigger.FAIL): SessionPhase.FAILED for phase in SessionPhase if phase not in OVER},
    **{(phase, Trigger.CLOSE): SessionPhase.CLOSED for phase in SessionPhase if phase not in OVER},
    **{(phase, Trigger.CLOSE): phase for phase in SessionPhase if phase in OVER},  # idempotent
}


def next_phase(phase: SessionPhase, trigger: Trigger) -> SessionPhase:
    """Return the phase that `trigger` leads to.

    Raises:
        IllegalTriggerError: the pair is not in `EDGES`; nothing has changed.
    """
    try:
        return EDGES[phase, trigger]
    except KeyError:
        raise IllegalTriggerError(f"{trigger} while {phase}") from None
