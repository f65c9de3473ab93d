"""The attributes of a world's participant: what they say, and that the room has them in the end."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pytest
from livekit import rtc

from reverie.rtc.livekit.options import BridgeOptions
from reverie.rtc.livekit.status import Status, StatusBoard, changed, note
from reverie.sessions.protocol.events import (
    ControlApplied,
    Error,
    RequestQueued,
    SessionClosed,
    SessionRecovering,
    SessionUpdated,
)
from reverie.sessions.protocol.session_view import ControlView, InputView, SessionView

VIEW = SessionView(
    state="active",
    model="m",
    program="p",
    prompt="a lake",
    seed=1,
    controls=(
        ControlView(name="move", merge="edges", keys=("left", "right")),
        ControlView(name="look", merge="sum"),
    ),
    inputs=(InputView(name="camera", kind="video", merge="latest"),),
)


def updated(**fields: object) -> SessionUpdated:
    return SessionUpdated(view=VIEW.model_copy(update=fields))


def applied(control: str, *unknown: str) -> ControlApplied:
    return ControlApplied(control=control, step=1, chunk=1, pts_us=1, unknown_words=unknown)


def test_the_view_says_what_a_front_end_needs_to_offer() -> None:
    status = note(Status(), updated())
    assert status.attributes() == {
        **Status().attributes(),
        "world.status": "live",
        "world.model": "m",
        "world.program": "p",
        "world.prompt": "a lake",
        "world.keys": "left,right",
        "world.axes": "look",
        "world.camera": "camera",
    }


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("created", "starting"),
        ("queued", "queued"),
        ("active", "live"),
        ("paused", "paused"),
        ("detached", "live"),
        ("failed", "ended"),
        ("closed", "ended"),
    ],
)
def test_the_state_of_the_session_is_told_in_the_rooms_words(state: str, said: str) -> None:
    assert note(Status(), updated(state=state)).status == said


def test_a_parked_world_is_not_called_paused() -> None:
    parked = Status(status="parked")
    assert note(parked, updated(state="paused")).status == "parked"
    assert note(parked, updated(state="closed")).status == "ended"


def test_a_front_end_is_told_whether_the_world_can_be_asked() -> None:
    asked = note(Status(), updated(takes_turns=True))
    assert asked.turns == "yes"
    assert note(asked, updated()).turns == ""


def test_events_change_what_they_are_about() -> None:
    status = note(Status(), RequestQueued(position=2))
    assert status.status == "queued"
    status = note(status, SessionRecovering(reason="worker_lost", chunk=3))
    assert status.status == "recovering"
    status = note(status, applied("c4", "castle", "moat"))
    assert (status.applied, status.unknown_words) == ("c4", "castle, moat")
    assert note(status, applied("c5")).unknown_words == ""
    assert note(status, Error(code="step_failed", message="")).error == "step_failed"
    assert note(status, Error(code="unknown_key", message="", command="c9")) == status
    over = note(status, SessionClosed(reason="shutdown"))
    assert (over.status, over.reason) == ("ended", "shutdown")


def test_long_values_are_cut() -> None:
    assert len(note(Status(), updated(prompt="x" * 9000)).attributes()["world.prompt"]) == 500


def test_only_changes_are_told_and_an_empty_value_takes_one_away() -> None:
    told = {"world.driver": "ada", "world.status": "live"}
    assert changed(told, {"world.driver": "", "world.status": "live", "world.error": ""}) == {
        "world.driver": ""
    }


class Speaker:
    """Stands where a room's own participant does, and may be deaf for a while."""

    def __init__(self) -> None:
        self.attributes: dict[str, str] = {}
        self.told = 0
        self.deaf = False
        self.loses_answers = False
        self._heard = asyncio.Event()

    async def set_attributes(self, attributes: dict[str, str]) -> None:
        self.told += 1
        self._heard.set()
        if self.deaf:
            await asyncio.Event().wait()
        self.attributes.update(attributes)
        if self.loses_answers:
            await asyncio.Event().wait()

    async def heard(self) -> None:
        """Wait until something is told from now on."""
        self._heard.clear()
        async with asyncio.timeout(10):
            await self._heard.wait()


@contextmanager
def telling(board: StatusBoard, speaker: Speaker) -> Iterator[None]:
    task = asyncio.ensure_future(board.tell(cast(rtc.LocalParticipant, speaker)))
    try:
        yield
    finally:
        task.cancel()


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> StatusBoard:
    monkeypatch.setattr("reverie.rtc.livekit.status.ANSWER_S", 0.05)
    return StatusBoard(BridgeOptions(attributes_per_s=1000))


async def all_told(board: StatusBoard) -> None:
    async with asyncio.timeout(10):
        await board.all_told()


async def test_the_room_gets_every_change_and_all_of_it_after_it_forgot(
    board: StatusBoard,
) -> None:
    speaker = Speaker()
    with telling(board, speaker):
        board.change(driver="ada", viewers="2")
        await all_told(board)
        assert speaker.attributes["world.driver"] == "ada"
        board.change(driver="")
        await all_told(board)
        assert speaker.attributes["world.driver"] == ""
        speaker.attributes.clear()
        board.forget()
        await all_told(board)
        told = {name: value for name, value in speaker.attributes.items() if value}
        assert told == {"world.status": "starting", "world.viewers": "2"}


async def test_a_change_that_the_room_did_not_take_is_told_again(board: StatusBoard) -> None:
    speaker = Speaker()
    speaker.deaf = True
    with telling(board, speaker):
        board.change(driver="ada")
        await speaker.heard()
        await speaker.heard()
        speaker.deaf = False
        await all_told(board)
        assert speaker.attributes["world.driver"] == "ada"


async def test_a_value_that_came_without_an_answer_does_not_stay_when_it_is_taken_back(
    board: StatusBoard,
) -> None:
    speaker = Speaker()
    with telling(board, speaker):
        board.change(status="live")
        await all_told(board)
        speaker.loses_answers = True
        board.change(status="paused", driver="ada")
        await speaker.heard()
        board.change(status="live", driver="")
        await speaker.heard()
        speaker.loses_answers = False
        await all_told(board)
        assert speaker.attributes["world.status"] == "live"
        assert speaker.attributes["world.driver"] == ""


async def test_while_the_session_is_lost_it_is_recovering_until_it_is_over(
    board: StatusBoard,
) -> None:
    speaker = Speaker()
    with telling(board, speaker):
        board.change(status="live")
        board.lose(True)
        board.put(note(board.status, updated(state="active")))  # a view that was still on its way
        await all_told(board)
        assert speaker.attributes["world.status"] == "recovering"
        board.lose(False)
        await all_told(board)
        assert speaker.attributes["world.status"] == "live"
        board.lose(True)
        board.change(status="ended", reason="no_such_session")
        await all_told(board)
        assert speaker.attributes["world.status"] == "ended"


async def test_what_did_not_change_is_not_told(board: StatusBoard) -> None:
    speaker = Speaker()
    with telling(board, speaker):
        board.change(driver="ada")
        await all_told(board)
        before = speaker.told
        board.change(driver="ada")
        board.put(board.status)
        board.change(viewers="1")
        await all_told(board)
        assert speaker.told == before + 1


async def test_a_world_that_leaves_also_removes_what_it_was_just_telling(
    board: StatusBoard,
) -> None:
    speaker = Speaker()
    with telling(board, speaker):
        board.change(driver="ada")
        await all_told(board)
        speaker.deaf = True
        board.change(fps="24")
        await speaker.heard()
    speaker.attributes["world.fps"] = "24"  # the room took what nobody waited for any more
    speaker.deaf = False
    await board.retract(cast(rtc.LocalParticipant, speaker))
    assert not any(speaker.attributes.values())


async def test_a_world_that_leaves_after_a_reconnection_removes_what_it_told_before(
    board: StatusBoard,
) -> None:
    speaker = Speaker()
    with telling(board, speaker):
        board.change(driver="ada")
        await all_told(board)
    board.forget()
    await board.retract(cast(rtc.LocalParticipant, speaker))
    assert not any(speaker.attributes.values())
