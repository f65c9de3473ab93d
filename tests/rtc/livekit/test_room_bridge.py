"""A world in a room: seen by all, steered by one, changed by what is said."""

from collections.abc import AsyncIterator

import pytest
from livekit import rtc
from livekit_rig import LiveKit
from livekit_world import WORLD, Viewer, World
from rtc_rig import ServerRig
from stub_model import prompt_mark
from waiting import until

from reverie.rtc import connect


@pytest.fixture
async def world(livekit: LiveKit, rig: ServerRig) -> AsyncIterator[World]:
    async with World.shown(livekit, connect(rig.url, prompt="a lake")) as shown:
        yield shown


@pytest.fixture
async def ada(world: World) -> AsyncIterator[Viewer]:
    async with world.guest("ada") as guest:
        await guest.sees(lambda _: True, "the world")
        yield guest


@pytest.fixture
async def ben(world: World) -> AsyncIterator[Viewer]:
    async with world.guest("ben") as guest:
        await guest.sees(lambda _: True, "the world")
        yield guest


async def test_two_see_the_world_move_under_the_first_ones_keys(ada: Viewer, ben: Viewer) -> None:
    assert not ada.stamps[-1].held
    await ada.press("left")
    for guest in (ada, ben):
        await guest.sees(lambda stamp: "left" in stamp.held, "the key")
        await guest.knows(driver="ada", viewers="2", status="live")
    await ada.press("left", "release")
    for guest in (ada, ben):
        await guest.sees(lambda stamp: not stamp.held, "its release", since=len(guest.stamps))


async def test_a_line_of_the_chat_changes_the_world(ada: Viewer, ben: Viewer) -> None:
    await ada.me.send_text("a desert", topic="lk.chat")
    await ben.sees(lambda stamp: stamp.prompt == prompt_mark("a desert"), "a desert")
    await ben.knows(prompt="a desert")


async def test_a_prompt_by_text_stream_is_told_with_its_author_and_tag(ada: Viewer) -> None:
    await ada.me.send_text("a wood", topic="world.prompt", attributes={"tag": "first"})
    await ada.sees(lambda stamp: stamp.prompt == prompt_mark("a wood"), "a wood")
    await ada.hears("control.applied", by="ada", tag="first")


async def test_an_interrupt_shows_within_one_chunk(livekit: LiveKit, rig: ServerRig) -> None:
    async with (
        World.shown(livekit, connect(rig.url, parameters={"step_ms": 20})) as world,
        world.guest("ada") as ada,
    ):
        await ada.sees(lambda stamp: stamp.chunk >= 3, "the world go on")
        await ada.call("action", action={"move": "left"}, edge="press")
        await ada.call("interrupt")
        back = (await ada.hears("session.interrupted"))["chunk"]
        held = await ada.sees(lambda stamp: "left" in stamp.held, "the key")
        assert held.chunk <= back + 1
        before = [stamp.chunk for stamp in ada.stamps if not stamp.held]
        assert max(before) <= back + 1  # at most the chunk that was being shown


async def test_who_does_not_drive_is_refused_until_handed_the_lock(
    ada: Viewer, ben: Viewer
) -> None:
    await ada.press("up")
    await ben.knows(driver="ada")
    await ben.press("down")
    refusal = await ben.hears("world.refused")
    assert refusal["code"] == "seat_taken"
    await ada.call("drive", to="ben")
    await ada.knows(driver="ben")
    await ben.press("down")
    await ada.sees(lambda stamp: stamp.held == {"down"}, "ben's key, and ada's let go of")
    with pytest.raises(rtc.RpcError, match="seat_taken"):
        await ada.call("action", action={"move": "up"})
    assert not [told for told in ada.told if told["type"] == "world.refused"]


async def test_bad_requests_are_refused_by_name_and_change_nothing(ada: Viewer) -> None:
    await ada.me.publish_data("no json", topic="world.input")
    assert (await ada.hears("world.refused"))["code"]
    with pytest.raises(rtc.RpcError) as refused:
        await ada.call("rewind", chunk=-4)
    assert "chunk" in str(refused.value.data)
    await ada.press("left")
    await ada.sees(lambda stamp: stamp.held == {"left"}, "the key")


async def test_the_world_can_be_rewound_and_reset_by_call(ada: Viewer) -> None:
    await ada.sees(lambda stamp: stamp.chunk >= 3, "some chunks")
    answer = await ada.call("rewind", chunk=1)
    assert answer["chunk"] == 1
    await ada.hears("session.interrupted", reason="rewind", chunk=1)
    await ada.call("reset", seed=5)
    await ada.sees(lambda stamp: stamp.seed == 5, "another seed")


async def test_a_viewer_who_leaves_ends_nothing_and_a_driver_lets_go(
    world: World, ada: Viewer, ben: Viewer
) -> None:
    await ben.press("right")
    await ada.sees(lambda stamp: stamp.held == {"right"}, "ben's key")
    await ben.leave()
    await ada.sees(lambda stamp: not stamp.held, "the key let go", since=len(ada.stamps))
    await ada.knows(viewers="1")
    await ada.press("left")
    await ada.sees(lambda stamp: stamp.held == {"left"}, "ada's key")
    assert ada.attributes(WORLD)["world.driver"] == "ada"
    assert not world.serving.done()
    await until(lambda: "participant_disconnected" in ada.happened, "ada to miss ben")
