"""The suite's own server does for the real SDK what LiveKit's does, and goes wrong when told to."""

from livekit_guest import Guest
from livekit_rig import LiveKit

RED = (220, 20, 20)


def is_red(colour: tuple[float, float, float]) -> bool:
    return colour[0] > 150 and max(colour[1:]) < 90


async def test_one_sees_the_pictures_of_another(livekit: LiveKit) -> None:
    room = livekit.new_room()
    async with Guest.joined(livekit, room, "ada") as ada, Guest.joined(livekit, room, "ben") as ben:
        camera = await ada.show(RED)
        picture = await ben.picture(lambda seen: is_red(seen.colour), "a red picture")
        await camera.close()
        assert picture.of == "ada"
