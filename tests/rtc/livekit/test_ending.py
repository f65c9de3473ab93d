"""How a world ends: the room hears why, and a world that only leaves takes along what it said."""

from livekit import rtc
from livekit_rig import LiveKit
from livekit_world import WORLD, World
from rtc_rig import ServerRig
from waiting import until

from reverie.rtc import connect
from reverie.rtc.livekit import RoomBridge


async def test_when_the_session_ends_the_room_hears_why_before_the_picture_goes(
    livekit: LiveKit, rig: ServerRig
) -> None:
    async with (
        World.shown(livekit, connect(rig.url)) as world,
        world.guest("ada") as ada,
    ):
        await ada.sees(lambda _: True, "the world")
        await world.bridge.session.close()
        await ada.knows(status="ended", reason="closed")
        await ada.hears("session.closed", reason="closed")
        await until(world.serving.done, "the room to be served no more")
        ending = world.serving.result()
        assert (ending.reason, ending.message, ending.final) == ("session_over", "closed", True)
        await until(lambda: "track_unpublished" in ada.happened, "the picture to go")


async def test_a_session_that_comes_coded_is_refused_by_name(
    livekit: LiveKit, rig: ServerRig
) -> None:
    async with connect(rig.url, codecs=("jpeg",)) as session:
        name = livekit.new_room()
        room = rtc.Room()
        await room.connect(livekit.url, livekit.token(WORLD, name))
        ending = await RoomBridge(session).serve(room)
        await room.disconnect()
    assert ending.reason == "needs_decoder"
    assert "jpeg" in ending.message


async def test_a_world_that_leaves_a_room_takes_its_attributes_along(
    livekit: LiveKit, rig: ServerRig
) -> None:
    async with (
        World.shown(livekit, connect(rig.url)) as world,
        world.guest("ada") as ada,
    ):
        await ada.knows(status="live", viewers="1")
        world.serving.cancel()
        await until(
            lambda: not [each for each in ada.attributes(WORLD) if each.startswith("world.")],
            "the attributes to go",
        )
        assert world.room.isconnected()
        assert WORLD in ada.room.remote_participants
