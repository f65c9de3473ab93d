"""A world lives longer than what it is shown by: viewers, connections, tokens and tracks."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from typing import Any, cast

import pytest
from livekit import rtc
from livekit_rig import LiveKit
from livekit_world import WORLD, World
from rtc_rig import ServerRig
from stub_model import prompt_mark
from waiting import until

from reverie.rtc import connect
from reverie.rtc.client.remote_link import LinkEnding
from reverie.rtc.client.remote_session import RemoteSession
from reverie.rtc.livekit import BridgeOptions

SOON_EMPTY = BridgeOptions(empty_after_s=0.2, room_s=2.0)


@pytest.fixture
async def world(livekit: LiveKit, rig: ServerRig) -> AsyncIterator[World]:
    async with World.shown(livekit, connect(rig.url), SOON_EMPTY) as shown:
        yield shown


async def test_the_last_to_leave_parks_the_world_and_the_next_revives_it(world: World) -> None:
    async with world.guest("ada") as ada:
        before = await ada.sees(lambda stamp: stamp.chunk >= 2, "the world go on")
    await until(lambda: world.bridge.session.view.state == "paused", "the world to rest")
    async with world.guest("ben") as ben:
        await ben.knows(status="live")
        after = await ben.sees(lambda stamp: stamp.chunk > before.chunk, "it go on")
        assert after.session == before.session
    assert not world.serving.done()


async def test_a_world_that_nobody_comes_back_to_ends(livekit: LiveKit, rig: ServerRig) -> None:
    options = BridgeOptions(empty_after_s=0.1, keep_empty_s=0.1)
    async with World.shown(livekit, connect(rig.url), options) as world:
        await until(world.serving.done, "the world to end")
        assert world.serving.result().reason == "abandoned"


async def test_a_network_that_drops_and_comes_back_keeps_the_world(world: World) -> None:
    async with world.guest("ada") as ada:
        await ada.press("left")
        before = await ada.sees(lambda stamp: stamp.held == {"left"}, "the key")
        await world.fault("shut_out")
        await world.fault("sever")
        await until(lambda: WORLD not in ada.room.remote_participants, "ada to miss the world")
        await until(lambda: world.bridge.session.view.state == "paused", "it to rest meanwhile")
        seen = len(ada.stamps)
        await world.fault("let_in")
        after = await ada.sees(lambda _: True, "the world again", since=seen)
        assert after.session == before.session
        assert after.chunk >= before.chunk
        await ada.knows(status="live", viewers="1")
        await ada.sees(lambda stamp: not stamp.held, "a key whose release may be lost let go of")
        await ada.press("right")
        await ada.sees(lambda stamp: stamp.held == {"right"}, "another key")
    assert not world.serving.done()


async def test_a_server_that_is_lost_is_told_at_once_and_when_it_is_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.guest("ada") as ada:
        await ada.knows(status="live")
        link = cast(RemoteSession, world.bridge.session)._link
        attach, back = link._once, asyncio.Event()

        async def held_up() -> tuple[LinkEnding, bool]:
            await back.wait()
            return await attach()

        monkeypatch.setattr(link, "_once", held_up)
        assert link._socket is not None
        link._socket.transport.abort()
        await ada.knows(status="recovering")
        assert (await ada.call("state"))["status"] == "recovering"
        seen = len(ada.stamps)
        back.set()
        await ada.knows(status="live")
        await ada.sees(lambda _: True, "the world again", since=seen)


async def test_a_refreshed_token_brings_the_world_back(world: World) -> None:
    async with world.guest("ada") as ada:
        before = await ada.sees(lambda _: True, "the world")
        refreshed: list[None] = []
        world.room.on("token_refreshed", lambda: refreshed.append(None))
        await world.fault("refresh")  # and from now on the token that it came with is refused
        await until(lambda: refreshed, "a fresh token")
        await world.fault("sever")
        await until(lambda: "participant_disconnected" in ada.happened, "ada to miss the world")
        seen = len(ada.stamps)
        after = await ada.sees(lambda _: True, "the world again", since=seen)
        assert after.session == before.session


async def test_lost_tracks_and_broken_peer_connections_are_made_anew(
    livekit: LiveKit, rig: ServerRig
) -> None:
    livekit.must_be_ours()

    async def track_lost_by_a_reconnection() -> None:
        async with World.shown(livekit, connect(rig.url), SOON_EMPTY) as world:
            await seen_again_after(world, "ignore_tracks", "sever")

    async def broken_peer_connection() -> None:
        async with World.shown(livekit, connect(rig.url), SOON_EMPTY) as world:
            await seen_again_after(world, "fail_media")

    async with asyncio.TaskGroup() as tasks:  # for each takes the SDK more than ten seconds
        tasks.create_task(track_lost_by_a_reconnection())
        tasks.create_task(broken_peer_connection())


async def seen_again_after(world: World, *faults: str) -> None:
    async with world.guest("ada") as ada:
        before = await ada.sees(lambda _: True, "the world")
        for fault in faults:
            await world.fault(fault)
        await until(lambda: "participant_disconnected" in ada.happened, "ada to miss the world")
        after = await ada.sees(lambda _: True, "the world again", since=len(ada.stamps))
        assert after.session == before.session


async def test_pictures_that_the_server_takes_away_are_published_again(world: World) -> None:
    async with world.guest("ada") as ada:
        before = await ada.sees(lambda stamp: stamp.chunk >= 2, "the world go on")
        await world.fault("unpublish")
        await until(lambda: ada.happened.count("track_published") == 2, "the track again")
        after = await ada.sees(lambda _: True, "the world again", since=len(ada.stamps))
        assert after.session == before.session


async def test_of_two_worlds_with_one_identity_the_second_is_shown(
    world: World, livekit: LiveKit, rig: ServerRig
) -> None:
    async with world.guest("ada") as ada:
        first = await ada.sees(lambda _: True, "the first world")
        other = World.shown(livekit, connect(rig.url), SOON_EMPTY, room_name=world.room_name)
        async with other as shown:
            await until(world.serving.done, "the first to go")
            ending = world.serving.result()
            assert (ending.reason, ending.final) == ("duplicate_identity", True)
            await ada.sees(lambda stamp: stamp.session != first.session, "the second world")
            await ada.press("left")
            await ada.sees(lambda stamp: stamp.held == {"left"}, "its key")
            assert not shown.serving.done()


async def test_who_leaves_during_a_call_takes_nothing_along(world: World) -> None:
    async with world.guest("ben") as ben:
        async with world.guest("ada") as ada:
            await ada.press("left")
            await ben.sees(lambda stamp: stamp.held == {"left"}, "ada's key")
            calling = [asyncio.create_task(ada.call("interrupt")) for _ in range(5)]
            await asyncio.sleep(0)
        for outcome in await asyncio.gather(*calling, return_exceptions=True):
            assert isinstance(outcome, dict | rtc.RpcError), outcome
        await ben.sees(lambda stamp: not stamp.held, "ada's key let go", since=len(ben.stamps))
        await ben.knows(viewers="1")


async def test_a_text_whose_end_is_lost_holds_nobody_up(world: World) -> None:
    async with world.guest("ada") as ada:
        await ada.sees(lambda _: True, "the world")
        await ada.fault("lose", kind="stream_trailer")
        await ada.me.send_text("a desert", topic="world.prompt")
        await ada.me.send_text("a wood", topic="world.prompt")
        await ada.knows(prompt="a wood")


async def test_calls_texts_and_keys_of_two_race_and_the_world_goes_on(world: World) -> None:
    async with world.guest("ada") as ada, world.guest("ben") as ben:
        await ada.press("left")
        await ben.knows(driver="ada")
        async with asyncio.TaskGroup() as tasks:
            for number in range(6):
                for guest in (ada, ben):
                    tasks.create_task(refused_or_done(guest.call("interrupt")))
                    tasks.create_task(refused_or_done(guest.call("rewind", chunks=1)))
                    tasks.create_task(guest.press("right", "tap"))
                tasks.create_task(ada.me.send_text(f"wood {number}", topic="lk.chat"))
        await ada.call("prompt", text="a desert")
        last = await ben.sees(lambda stamp: stamp.prompt == prompt_mark("a desert"), "a desert")
        await ben.sees(lambda stamp: stamp.chunk > last.chunk, "it go on")
        assert last.held == {"left"}


async def refused_or_done(call: Coroutine[None, None, dict[str, Any]]) -> None:
    with suppress(rtc.RpcError):
        await call


async def test_packets_that_come_twice_or_never_hold_nobody_up(world: World) -> None:
    async with world.guest("ada") as ada:
        await ada.sees(lambda _: True, "the world")
        for kind in ("stream_header", "stream_chunk", "stream_trailer", "user", "rpc_ack"):
            await ada.fault("double", kind=kind, count=2)
        await ada.me.send_text("a desert", topic="world.prompt")
        await ada.press("left")
        await ada.call("interrupt")
        await ada.sees(
            lambda stamp: stamp.prompt == prompt_mark("a desert") and stamp.held == {"left"}, "both"
        )
