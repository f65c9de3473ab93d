"""A world in a LiveKit room, for tests: the stub model's, whose pictures say what made them."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from livekit import rtc
from livekit_rig import LiveKit
from room_guest import LIMIT_S, Guest, Picture
from stub_model import SIZE, Stamp, read_stamp
from waiting import until

from reverie.rtc.livekit import BridgeOptions, RoomBridge, RoomEnding
from reverie.sessions import Session

WORLD = "world"
"""The identity of the world's participant."""


@dataclass(slots=True)
class World:
    """A served session.

    Attributes:
        room: the world's own connection to the room.
    """

    livekit: LiveKit
    bridge: RoomBridge
    room: rtc.Room
    room_name: str
    serving: asyncio.Task[RoomEnding]

    @classmethod
    @asynccontextmanager
    async def shown(
        cls,
        livekit: LiveKit,
        session: AbstractAsyncContextManager[Session],
        options: BridgeOptions | None = None,
        room_name: str = "",
    ) -> AsyncIterator["World"]:
        """Show a session in a room, for as long as the block lasts; without a name in a new one.

        Raises:
            AssertionError: something went wrong meanwhile that nobody has handled.
        """
        name, room = room_name or livekit.new_room(), rtc.Room()
        async with nothing_unhandled(), session as opened:
            bridge = RoomBridge(opened, options)
            async with asyncio.timeout(LIMIT_S):
                await room.connect(livekit.url, livekit.token(WORLD, name))
            serving = asyncio.create_task(bridge.serve(room), name="bridge")
            try:
                async with asyncio.timeout(LIMIT_S):
                    await bridge.shown()
                yield cls(livekit, bridge, room, name, serving)
            finally:
                serving.cancel()
                await asyncio.wait([serving], timeout=LIMIT_S)
                await room.disconnect()

    def guest(self, identity: str) -> AbstractAsyncContextManager["Viewer"]:
        """Have somebody in the room, for as long as the block lasts."""
        topics = ("world.events",)
        return Viewer.joined(self.livekit, self.room_name, identity, topics=topics)

    async def fault(self, fault: str, *, kind: str = "", count: int = 1) -> None:
        """Have something go wrong for the world, as `LiveKit.fault` does."""
        await self.livekit.fault(fault, self.room_name, WORLD, kind=kind, count=count)


@asynccontextmanager
async def nothing_unhandled() -> AsyncIterator[None]:
    """Fail when the loop is told of an error that nobody has handled."""
    loop, found = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda _, context: found.append(context))
    yield
    gc.collect()  # by which tasks tell of errors that nobody has asked for
    await asyncio.sleep(0)
    loop.set_exception_handler(None)
    assert not found, found


@dataclass(slots=True)
class Viewer(Guest):
    """Somebody who reads the stub's pictures, and what the world tells of itself.

    Attributes:
        stamps: of all pictures that could be read, in their order.
    """

    stamps: list[Stamp] = field(default_factory=list)

    def see(self, picture: Picture) -> None:
        """Take a picture that has come."""
        Guest.see(self, picture)
        with suppress(ValueError):
            times = max(picture.pixels.shape[0] // SIZE, 1)  # small pictures come enlarged
            self.stamps.append(read_stamp(picture.pixels[times // 2 :: times, times // 2 :: times]))

    async def sees(self, fits: Callable[[Stamp], bool], what: str, *, since: int = 0) -> Stamp:
        """Wait until a picture of the world was as wanted, and return its stamp.

        Args:
            since: how many stamps to pass over; `len(viewer.stamps)` means from now on.
        """
        found: list[Stamp] = []

        def look() -> bool:
            found[:] = [stamp for stamp in self.stamps[since:] if fits(stamp)][:1]
            return bool(found)

        try:
            await until(look, f"{self.identity} to see {what}")
        except AssertionError as error:
            raise AssertionError(
                f"{error}; saw {self.stamps[-1:]}, {self.told}, {self.attributes(WORLD)}"
            ) from None
        return found[0]

    @property
    def told(self) -> list[dict[str, Any]]:
        """Return what the world has told of itself."""
        lines = (line for text in self.texts_on("world.events") for line in text.splitlines())
        return [json.loads(line) for line in lines]

    async def hears(self, type: str, **fields: object) -> dict[str, Any]:
        """Wait until the world has told something, and return that."""

        def found() -> list[dict[str, Any]]:
            fit = ({"type": type, **fields}.items() <= each.items() for each in self.told)
            return [each for each, fits in zip(self.told, fit, strict=True) if fits]

        try:
            await until(found, f"{self.identity} to hear {type} {fields or ''}")
        except AssertionError as error:
            raise AssertionError(f"{error}; heard {self.told}") from None
        return found()[0]

    async def knows(self, **attributes: str) -> None:
        """Wait until the world's attributes are so, each without its `world.`."""
        wanted = {f"world.{name}": value for name, value in attributes.items()}
        try:
            await until(
                lambda: wanted.items() <= self.attributes(WORLD).items(),
                f"{self.identity} to know {attributes}",
            )
        except AssertionError as error:
            raise AssertionError(f"{error}; knows {self.attributes(WORLD)}") from None

    async def call(self, method: str, **payload: object) -> dict[str, Any]:
        """Call the world, and return its answer.

        Raises:
            rtc.RpcError: it refuses, or does not answer.
        """
        answer = await self.me.perform_rpc(
            destination_identity=WORLD, method=f"world.{method}", payload=json.dumps(payload)
        )
        said: dict[str, Any] = json.loads(answer)
        return said

    async def press(self, key: str, edge: str = "press") -> None:
        """Send a key's edge."""
        packet = json.dumps({"key": key, "edge": edge})
        await self.me.publish_data(packet, topic="world.input")
