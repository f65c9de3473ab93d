"""The phases of a session: every edge, and every pair that is not one."""

import itertools

import pytest

from reverie.sessions.protocol.errors import IllegalTriggerError
from reverie.sessions.state.prompt_memory import PromptMemory
from reverie.sessions.state.session_phases import EDGES, OVER, SessionPhase, Trigger, next_phase
from reverie.sessions.state.session_state import SessionId, SessionState


def new_state() -> SessionState:
    return SessionState(SessionId("s"), "owner", "fake", "world", 7, PromptMemory(100))


@pytest.mark.parametrize(("pair", "after"), EDGES.items())
def test_every_edge_leads_where_the_table_says(
    pair: tuple[SessionPhase, Trigger], after: SessionPhase
) -> None:
    assert next_phase(*pair) is after


@pytest.mark.parametrize(
    "pair", [pair for pair in itertools.product(SessionPhase, Trigger) if pair not in EDGES]
)
def test_every_other_pair_is_refused_and_changes_nothing(
    pair: tuple[SessionPhase, Trigger],
) -> None:
    state = new_state()
    state.phase = pair[0]
    with pytest.raises(IllegalTriggerError):
        state.move(pair[1])
    assert state.phase is pair[0]


def test_the_usual_phases_go_from_created_to_closed() -> None:
    state = new_state()
    lived = [state.phase]
    for trigger in (
        Trigger.ENQUEUE,
        Trigger.START,
        Trigger.PAUSE,
        Trigger.RESUME,
        Trigger.DETACH,
        Trigger.ATTACH,
        Trigger.CLOSE,
    ):
        state.move(trigger)
        lived.append(state.phase)
    assert lived == [
        "created",
        "queued",
        "active",
        "paused",
        "active",
        "detached",
        "active",
        "closed",
    ]


def test_pausing_and_resuming_are_idempotent() -> None:
    for trigger in (Trigger.PAUSE, Trigger.RESUME):
        state = new_state()
        state.phase = SessionPhase.ACTIVE
        state.move(trigger)
        assert not state.move(trigger)


def test_no_trigger_leaves_a_final_phase() -> None:
    assert {EDGES[pair] for pair in EDGES if pair[0] in OVER} == OVER


def test_closing_after_a_failure_leaves_it_failed() -> None:
    assert next_phase(SessionPhase.FAILED, Trigger.CLOSE) is SessionPhase.FAILED
