"""Joins a room by itself and rejoins after a loss, for programs without LiveKit Agents.

    async with reverie.connect(url, prompt="a desert") as session:
        await RoomConnection(RoomBridge(session), "wss://...", fresh_token).run()

The SDK reconnects after short losses. When it gives up, the room is joined again with a fresh
token, and the world continues there: the session waits meanwhile.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from livekit import rtc

from reverie.gpu_pool.wire.backoff import Backoff
from reverie.rtc.livekit.errors import NotJoinedError, RoomEnding
from reverie.rtc.livekit.room_bridge import RoomBridge

LOGGER = logging.getLogger(__name__)

Token = Callable[[], Awaitable[str]]
"""Returns the token of the world; called for every join, because tokens expire."""

LEAVE_S = 5.0
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0


@dataclass(frozen=True, slots=True)
class RoomConnectionOptions:
    """How long to try.

    Attributes:
        join_s: limit for one join.
        rejoin_s: how long to try again after a loss.
        token_s: limit for the token function.
    """

    join_s: float = 15.0
    rejoin_s: float = 120.0
    token_s: float = 10.0


class RoomConnection:
    """Keeps a world in a room.

    Attributes:
        joins: how often the room was joined.
    """

    def __init__(
        self,
        bridge: RoomBridge,
        url: str,
        token: Token,
        options: RoomConnectionOptions | None = None,
    ) -> None:
        self.joins = 0
        self._bridge = bridge
        self._url = url
        self._token = token
        self._options = options or RoomConnectionOptions()

    async def run(self) -> RoomEnding:
        """Stay in the room until it or the world has ended for good; return why.

        Raises:
            NotJoinedError: the room could not be joined in the first place, or not again in time.
        """
        loop, backoff = asyncio.get_running_loop(), Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        deadline_s = loop.time() + self._options.join_s
        while True:
            try:
                ending = await self._serve_once()
            except NotJoinedError as error:
                if error.final or loop.time() + backoff.pause_s > deadline_s:
                    raise
                LOGGER.warning("the room cannot be joined yet: %s", error)
            else:
                if ending.final:
                    return ending
                LOGGER.warning("the room was lost (%s); joining it again", ending.reason)
                deadline_s = loop.time() + self._options.rejoin_s
                backoff.restart()
            await asyncio.sleep(backoff.take())

    async def _serve_once(self) -> RoomEnding:
        room = rtc.Room()
        await self._join(room)
        self.joins += 1
        try:
            return await self._bridge.serve(room)
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(LEAVE_S):
                    await room.disconnect()

    async def _join(self, room: rtc.Room) -> None:
        try:
            async with asyncio.timeout(self._options.token_s):
                token = await self._token()
        except TimeoutError:
            raise NotJoinedError(
                "the token function did not return within token_s", final=False
            ) from None
        try:
            async with asyncio.timeout(self._options.join_s):
                await room.connect(self._url, token)
        except TimeoutError:
            raise NotJoinedError(f"{self._url} did not answer within join_s", final=False) from None
        except rtc.ConnectError as error:
            refused = any(code in error.message for code in ("401", "403"))
            message = f"{self._url} refuses: {error.message}"
            raise NotJoinedError(message, final=refused) from None
