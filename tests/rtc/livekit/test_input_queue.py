"""Inputs between the room's callbacks and the session: in order, bounded, and no key that hangs."""

import asyncio

import pytest

from reverie.rtc.livekit.errors import InputRefusedError
from reverie.rtc.livekit.input_queue import WAITING, InputStep, RoomInputQueue
from reverie.rtc.livekit.inputs import RoomAxesInput, RoomKeyInput, RoomReleaseInput
from reverie.sessions.protocol.session_view import ControlView

CONTROLS = (
    ControlView(name="move", merge="edges", keys=("left", "right")),
    ControlView(name="act", merge="edges", keys=("use",)),
    ControlView(name="look", merge="sum", low=-1.0, high=1.0),
    ControlView(name="zoom", merge="latest"),
)


async def taken(steering: RoomInputQueue, count: int) -> list[InputStep]:
    async with asyncio.timeout(5):
        return [await steering.take() for _ in range(count)]


async def nothing_waits(steering: RoomInputQueue) -> bool:
    waiting = asyncio.ensure_future(steering.take())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    idle = not waiting.done()
    waiting.cancel()
    return idle


async def test_keys_keep_their_order_and_find_their_control() -> None:
    steering = RoomInputQueue()
    steering.put("ada", [RoomKeyInput(key="left", edge="press")], CONTROLS)
    steering.put("ada", [RoomKeyInput(key="use", tag="t")], CONTROLS)
    steering.put("ada", [RoomKeyInput(key="left", edge="release")], CONTROLS)
    assert await taken(steering, 3) == [
        InputStep("ada", {"move": "left"}, "press"),
        InputStep("ada", {"act": "use"}, "tap", "t"),
        InputStep("ada", {"move": "left"}, "release"),
    ]
    assert await nothing_waits(steering)


async def test_a_key_that_nobody_knows_is_refused_with_those_that_are_known() -> None:
    steering = RoomInputQueue()
    with pytest.raises(InputRefusedError, match="left, right, use"):
        steering.put("ada", [RoomKeyInput(key="jump")], CONTROLS)
    assert await nothing_waits(steering)


async def test_a_packet_counts_as_a_whole_or_not_at_all() -> None:
    steering = RoomInputQueue()
    with pytest.raises(InputRefusedError, match="left, right, use"):
        steering.put("ada", [RoomKeyInput(key="left"), RoomKeyInput(key="jump")], CONTROLS)
    for _ in range(WAITING - 1):
        steering.put("ada", [RoomKeyInput(key="left")], CONTROLS)
    with pytest.raises(InputRefusedError, match="wait already"):
        steering.put("ada", [RoomKeyInput(key="right"), RoomKeyInput(key="use")], CONTROLS)
    everything = await taken(steering, WAITING - 1)
    assert {str(each.action) for each in everything} == {"{'move': 'left'}"}
    assert await nothing_waits(steering)


@pytest.mark.parametrize(
    ("axes", "code", "field"),
    [
        ({"look": 0.5, "fly": 1.0}, "unknown_control", "axes.fly"),
        ({"move": 1.0}, "unknown_control", "axes.move"),
        ({"look": 1.5}, "out_of_range", "axes.look"),
    ],
)
async def test_a_move_that_the_program_does_not_take_spoils_none_that_waits(
    axes: dict[str, float], code: str, field: str
) -> None:
    steering = RoomInputQueue()
    steering.put("ada", [RoomAxesInput(axes={"look": 0.5})], CONTROLS)
    with pytest.raises(InputRefusedError) as refusal:
        steering.put("ada", [RoomAxesInput(axes=axes)], CONTROLS)
    assert (refusal.value.code, refusal.value.field) == (code, field)
    assert (await taken(steering, 1))[0].action == {"look": 0.5}


async def test_moves_that_wait_become_one() -> None:
    steering = RoomInputQueue()
    for amount in (0.3, 0.4, 0.6):
        steering.put("ada", [RoomAxesInput(axes={"look": amount})], CONTROLS)
    steering.put("ada", [RoomAxesInput(axes={"zoom": 0.1})], CONTROLS)
    steering.put("ada", [RoomAxesInput(axes={"zoom": 0.2}, tag="last")], CONTROLS)
    [both] = await taken(steering, 1)
    assert both == InputStep("ada", {"look": 1.0, "zoom": 0.2}, tag="last")


async def test_moves_do_not_overtake_keys() -> None:
    steering = RoomInputQueue()
    steering.put("ada", [RoomAxesInput(axes={"look": 0.1})], CONTROLS)
    steering.put("ada", [RoomKeyInput(key="use")], CONTROLS)
    steering.put("ada", [RoomAxesInput(axes={"look": 0.2})], CONTROLS)
    assert [each.action for each in await taken(steering, 3)] == [
        {"look": 0.1},
        {"act": "use"},
        {"look": 0.2},
    ]


async def test_a_move_that_was_overtaken_is_left_out() -> None:
    steering = RoomInputQueue()
    for seq, amount in ((4, 0.4), (3, 0.3), (4, 0.9), (5, 0.5)):
        steering.put("ada", [RoomAxesInput(axes={"zoom": amount}, seq=seq)], CONTROLS)
    [newest] = await taken(steering, 1)
    assert newest.action == {"zoom": 0.5}
    assert steering.overtaken == 2


async def test_after_a_flood_no_key_hangs() -> None:
    steering = RoomInputQueue()
    for _ in range(WAITING):
        steering.put("ada", [RoomKeyInput(key="left", edge="press")], CONTROLS)
    for edge in ("press", "release"):
        with pytest.raises(InputRefusedError) as refusal:
            steering.put("ada", [RoomKeyInput(key="left", edge=edge)], CONTROLS)
        assert refusal.value.code == "too_many"
    everything = await taken(steering, WAITING + 1)
    assert everything.count(InputStep("", {})) == 1, "all keys are let go of"
    assert everything[-1] == InputStep("", {}), "and only after what waited before"


async def test_who_gives_up_the_lock_lets_go_of_all_keys_and_of_what_waits() -> None:
    steering = RoomInputQueue()
    steering.put("ada", [RoomKeyInput(key="left", edge="press")], CONTROLS)
    steering.put("ada", [RoomAxesInput(axes={"zoom": 0.1}, seq=7)], CONTROLS)
    steering.release("ada")
    steering.put("ben", [RoomKeyInput(key="right", edge="press")], CONTROLS)
    assert await taken(steering, 2) == [
        InputStep("", {}),
        InputStep("ben", {"move": "right"}, "press"),
    ]
    steering.put("ada", [RoomAxesInput(axes={"zoom": 0.2}, seq=0)], CONTROLS)  # counts anew
    assert (await taken(steering, 1))[0].action == {"zoom": 0.2}


async def test_letting_go_of_everything_waits_its_turn() -> None:
    steering = RoomInputQueue()
    steering.put("ada", [RoomKeyInput(key="left", edge="press")], CONTROLS)
    steering.put("ada", [RoomReleaseInput(release_all=True, tag="up")], CONTROLS)
    assert (await taken(steering, 2))[1] == InputStep("ada", {}, tag="up")


async def test_taking_can_be_cancelled_without_a_loss() -> None:
    steering = RoomInputQueue()
    taking = asyncio.ensure_future(steering.take())
    await asyncio.sleep(0)
    steering.put("ada", [RoomKeyInput(key="use")], CONTROLS)
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    assert (await taken(steering, 1))[0].action == {"act": "use"}
