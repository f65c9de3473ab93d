"""RPC without a room: every method's answer, and how it refuses."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from livekit import rtc
from stub_model import LOCATION
from waiting import until

from reverie.config import Deployment
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine
from reverie.rtc.livekit.calls import REFUSED, Answer, Calls
from reverie.rtc.livekit.command_gateway import OWN, Author, CommandGateway
from reverie.rtc.livekit.control_lock import LockChange
from reverie.rtc.livekit.options import BridgeOptions
from reverie.sessions import LocalSession


class Room:
    """A room whose calls go to a command gateway."""

    def __init__(self, session: LocalSession, options: BridgeOptions) -> None:
        self.session = session
        self.people = {"ada", "ben"}
        self.changes: list[LockChange] = []
        self.rests: list[bool] = []
        self.gateway = CommandGateway(session, options, self.changes.append)
        self.gateway.here = self.is_here
        self._handlers = Calls(self.gateway, self).handlers()

    def newest_chunk(self) -> int:
        return 7

    def is_here(self, identity: str) -> bool:
        return identity in self.people

    def state(self) -> Answer:
        return {"status": "live"}

    def ask_rest(self, wanted: bool) -> None:
        self.rests.append(wanted)

    async def call(self, by: str, method: str, payload: str | dict[str, Any] = "") -> Any:
        said = payload if isinstance(payload, str) else json.dumps(payload)
        call = rtc.RpcInvocationData("r1", by, said, 10.0, method=method)
        return json.loads(await self._handlers[f"world.{method}"](call))

    async def refusal(self, by: str, method: str, payload: str | dict[str, Any] = "") -> Any:
        with pytest.raises(rtc.RpcError) as refused:
            await self.call(by, method, payload)
        assert refused.value.code == REFUSED
        assert refused.value.data is not None
        said = json.loads(refused.value.data)
        assert refused.value.message == f"{said['code']}: {said['message']}"[:200]
        return said


@pytest.fixture
async def session() -> AsyncIterator[LocalSession]:
    models = (ModelOptions(name="stub", family=LOCATION),)
    deployment = Deployment(pool=PoolOptions(mode="inline", models=models))
    async with Engine.from_deployment(deployment) as engine, engine.session() as session:
        yield session


@pytest.fixture
def room(session: LocalSession) -> Room:
    return Room(session, BridgeOptions())


async def test_who_calls_first_drives_and_is_remembered_for_the_receipt(room: Room) -> None:
    answer = await room.call("ada", "action", {"action": {"move": "left"}, "tag": "k"})
    assert room.gateway.author(answer["control"]) == Author("ada", "k")
    assert room.changes == [LockChange(None, "ada")]
    said = await room.refusal("ben", "action", {"action": {"move": "left"}})
    assert said["code"] == "seat_taken"
    assert "ada" in said["message"]


@pytest.mark.parametrize(
    ("method", "payload"),
    [
        ("prompt", {"text": "a desert"}),
        ("interrupt", ""),
        ("reset", {"seed": 4}),
        ("update", {"parameters": {"step_ms": 1.0}}),
        ("pause", ""),
        ("resume", ""),
        ("rewind", {"chunk": 0}),
    ],
)
async def test_whatever_changes_the_world_only_the_driver_may(
    room: Room, method: str, payload: str | dict[str, Any]
) -> None:
    await room.call("ada", "drive")
    before = room.session.view
    assert (await room.refusal("ben", method, payload))["code"] == "seat_taken"
    assert room.session.view == before
    assert room.rests == []


async def test_a_prompt_changes_what_the_world_is(room: Room) -> None:
    assert (await room.call("ada", "prompt", {"text": "a desert"}))["control"]
    await until(lambda: room.session.view.prompt == "a desert")
    await room.call("ada", "prompt", {"text": " at night", "mode": "append"})
    await until(lambda: room.session.view.prompt.endswith("at night"))


async def test_prompts_may_be_everybodys(session: LocalSession) -> None:
    room = Room(session, BridgeOptions(prompts_from="everyone"))
    await room.call("ada", "drive")
    await room.call("ben", "prompt", {"text": "a desert"})
    assert (await room.refusal("ben", "interrupt"))["code"] == "seat_taken"
    assert room.gateway.control_lock.driver == "ada"


async def test_the_program_itself_is_never_refused_for_somebody_elses_driving(room: Room) -> None:
    await room.call("ada", "drive")
    await room.gateway.act(OWN, {"move": "left"})
    await room.gateway.say(OWN, "a desert")
    assert room.gateway.control_lock.driver == "ada"


async def test_the_lock_is_handed_over_and_released(room: Room) -> None:
    assert await room.call("ada", "drive") == {"driver": "ada"}
    assert (await room.refusal("ben", "drive"))["code"] == "seat_taken"
    assert (await room.refusal("ada", "drive", {"to": "eve"}))["code"] == "not_here"
    assert (await room.refusal("ben", "drive", {"to": "ben"}))["code"] == "not_driving"
    assert await room.call("ada", "drive", {"to": "ben"}) == {"driver": "ben"}
    assert await room.call("ben", "drive", {"release": True}) == {"driver": None}
    assert [change.now for change in room.changes] == ["ada", "ben", None]


@pytest.mark.parametrize(
    ("method", "payload"),
    [
        ("drive", ""),
        ("action", {"action": {"move": "left"}, "edge": "press"}),
        ("prompt", {"text": "a desert"}),
        ("interrupt", ""),
        ("update", {"parameters": {"step_ms": 1.0}}),
        ("pause", ""),
    ],
)
async def test_a_call_that_comes_after_its_caller_has_left_takes_no_lock(
    room: Room, method: str, payload: str | dict[str, Any]
) -> None:
    room.people.discard("ada")
    assert (await room.refusal("ada", method, payload))["code"] == "not_here"
    assert room.gateway.control_lock.driver is None
    assert (room.changes, room.rests) == ([], [])


@pytest.mark.parametrize(
    ("method", "payload"),
    [
        ("action", {"action": {"move": "left"}, "edge": "press"}),
        ("prompt", {"text": "a desert"}),
        ("interrupt", ""),
    ],
)
async def test_who_leaves_during_a_call_does_not_drive_when_it_ends(
    room: Room, monkeypatch: pytest.MonkeyPatch, method: str, payload: str | dict[str, Any]
) -> None:
    await room.call("ada", "drive")
    command = room.session._command
    asked: list[str] = []

    async def leave_meanwhile(kind: str, **fields: Any) -> str:
        asked.append(kind)
        answer = await command(kind, **fields)
        if "ada" in room.people:
            room.people.discard("ada")
            room.gateway.left("ada")
        return answer

    monkeypatch.setattr(room.session, "_command", leave_meanwhile)
    await room.call("ada", method, payload)
    assert room.gateway.control_lock.driver is None
    assert room.changes == [LockChange(None, "ada"), LockChange("ada", None)]
    if method == "action":
        assert asked[-1] == "release_all", "no driver is left to release the key"


async def test_pausing_is_asked_of_the_room(room: Room) -> None:
    assert await room.call("ada", "pause") == {}
    assert await room.call("ada", "resume") == {}
    assert room.rests == [True, False]


async def test_anybody_may_ask_how_things_stand(room: Room) -> None:
    await room.call("ada", "drive")
    assert await room.call("ben", "state") == {"status": "live"}


@pytest.mark.parametrize(
    ("method", "payload", "code", "field"),
    [
        ("action", "left", "not_json", "$"),
        ("action", "[]", "not_an_object", "$"),
        ("action", "", "missing", "action"),
        ("action", {"action": {"move": "away"}}, "unknown_key", "action.move"),
        ("action", {"action": {"fly": "up"}}, "unknown_control", "action.fly"),
        ("action", '{"action": {"look": 1e999}}', "non_finite", "action.look"),
        ("interrupt", {"loop": "nobody"}, "unknown_loop", "loop"),
        ("interrupt", {"now": True}, "unknown_field", "now"),
        ("rewind", {"chunk": -1}, "out_of_range", "chunk"),
        ("rewind", {"chunks": 0}, "out_of_range", "chunks"),
        ("update", {"parameters": {"prompt": 1}}, "unknown_parameter", "prompt"),
        ("update", {"parameters": {"nothing": 1}}, "unknown_parameter", "parameters.nothing"),
        ("reset", {"seed": "four"}, "wrong_type", "seed"),
        ("drive", {"to": ""}, "out_of_range", "to"),
        ("prompt", {"text": "x" * 9000}, "too_long", "text"),
    ],
)
async def test_what_is_wrong_is_named_and_changes_nothing(
    room: Room, method: str, payload: str | dict[str, Any], code: str, field: str
) -> None:
    before = room.session.view
    said = await room.refusal("ada", method, payload)
    assert (said["code"], said["field"]) == (code, field)
    assert room.session.view.prompt == before.prompt
    assert room.gateway.control_lock.driver is None, "a refused request takes no lock"


async def test_who_asks_too_often_is_told_when_to_ask_again_and_others_are_heard(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reverie.rtc.livekit.command_gateway.REQUESTS_AT_ONCE", 5)
    monkeypatch.setattr("reverie.rtc.livekit.command_gateway.REQUESTS_PER_S", 1e-6)
    for _ in range(5):
        await room.call("ada", "state")
    said = await room.refusal("ada", "state")
    assert said["code"] == "rate_limited"
    assert said["retry_after_s"] > 0
    assert await room.call("ben", "state")


async def test_a_session_that_is_over_refuses_by_name(room: Room) -> None:
    await room.session.close()
    assert (await room.refusal("ada", "interrupt"))["code"] == "closed"
