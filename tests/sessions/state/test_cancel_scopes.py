"""Cancelling one scope cancels what is inside it, and nothing else."""

from functools import partial

from reverie.sessions.state.cancel_scopes import CancelScope, ScopeKind


def scopes() -> dict[str, CancelScope]:
    """Return the scopes of a program of two loops with one stream each, by name."""
    session = CancelScope(ScopeKind.SESSION, "session")
    program = session.open(ScopeKind.PROGRAM, "program")
    made = {"session": session, "program": program}
    for name in ("world_model", "narrator"):
        made[name] = program.open(ScopeKind.LOOP, name)
        made[f"{name} out"] = made[name].open(ScopeKind.STREAM, f"{name} out")
    return made


def test_cancelling_a_loop_cancels_its_streams_and_not_its_siblings() -> None:
    made = scopes()
    made["narrator"].cancel("enough")
    assert {name for name, scope in made.items() if scope.cancelled} == {"narrator", "narrator out"}


def test_cancelling_the_session_cancels_everything_inside_first() -> None:
    made = scopes()
    order: list[str] = []
    for name, scope in made.items():
        scope.on_cancel(partial(_note, order, name))
    made["session"].cancel("closed")
    assert order[-1] == "session"
    assert order.index("narrator out") < order.index("narrator") < order.index("program")
    assert len(order) == 6


def test_the_first_reason_is_kept_and_no_callback_runs_twice() -> None:
    made = scopes()
    told: list[str] = []
    made["session"].on_cancel(told.append)
    made["narrator"].cancel("enough")
    made["session"].cancel("closed")
    made["session"].cancel("again")
    assert told == ["closed"]
    assert made["narrator out"].reason == "enough"


def test_a_scope_or_callback_added_to_a_cancelled_scope_is_cancelled_at_once() -> None:
    session = scopes()["session"]
    told: list[str] = []
    session.cancel("closed")
    session.on_cancel(told.append)
    session.open(ScopeKind.PROGRAM, "late").on_cancel(told.append)
    assert told == ["closed", "closed"]


def _note(order: list[str], name: str, _reason: str) -> None:
    order.append(name)
