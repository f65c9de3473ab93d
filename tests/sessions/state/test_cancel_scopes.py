"""Cancelling one scope cancels what is inside it, and nothing else."""

from functools import partial

import pytest

from reverie.sessions.state.cancel_scopes import CancelScope, ScopeKind


def tree() -> CancelScope:
    session = CancelScope(ScopeKind.SESSION, "s")
    program = session.open(ScopeKind.PROGRAM, "world")
    for name in ("world_model", "narrator"):
        loop = program.open(ScopeKind.LOOP, name)
        loop.open(ScopeKind.STREAM, f"{name} out")
    return session


def test_cancelling_a_loop_cancels_its_streams_and_leaves_its_siblings() -> None:
    session = tree()
    session.find(ScopeKind.LOOP, "narrator").cancel("enough")
    cancelled = {scope.name for scope in session.walk() if scope.cancelled}
    assert cancelled == {"narrator", "narrator out"}


def test_cancelling_the_session_cancels_everything_inside_first() -> None:
    session = tree()
    order: list[str] = []
    for scope in session.walk():
        scope.on_cancel(partial(_note, order, scope.name))
    session.cancel("closed")
    assert order[-1] == "s"
    assert order.index("narrator out") < order.index("narrator") < order.index("world")
    assert len(order) == 6


def test_the_first_reason_stands_and_nobody_is_called_twice() -> None:
    session = tree()
    told: list[str] = []
    session.on_cancel(told.append)
    session.find(ScopeKind.LOOP, "narrator").cancel("enough")
    session.cancel("closed")
    session.cancel("again")
    assert told == ["closed"]
    assert session.find(ScopeKind.STREAM, "narrator out").reason == "enough"


def test_what_comes_to_a_cancelled_scope_is_cancelled_at_once() -> None:
    session = tree()
    told: list[str] = []
    session.cancel("closed")
    session.on_cancel(told.append)
    session.open(ScopeKind.PROGRAM, "late").on_cancel(told.append)
    assert told == ["closed", "closed"]


def test_looking_for_a_scope_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LookupError):
        tree().find(ScopeKind.LOOP, "nobody")


def _note(order: list[str], name: str, _reason: str) -> None:
    order.append(name)
