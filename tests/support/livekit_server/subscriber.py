"""What a participant is sent: others' tracks and data packets."""

import asyncio
from collections.abc import Awaitable, Callable

from aiortc import RTCDataChannel, RTCRtpSender

from livekit_server.connection import Connection
from livekit_server.room import Member

ANSWER_LIMIT_S = 30.0


class Subscriber:
    """The peer connection on which the server makes the offers, one at a time.

    Args:
        say: sends an offer to the client, whose answer comes in by `answered`.
    """

    def __init__(self, say: Callable[[str], Awaitable[None]]) -> None:
        self.connection = Connection()
        self._say = say
        self._turn = asyncio.Lock()
        self._answer: asyncio.Future[str] | None = None
        self._senders: dict[str, RTCRtpSender] = {}  # by the track's id
        inner = self.connection.inner
        self._channels: dict[str, RTCDataChannel] = {
            "_reliable": inner.createDataChannel("_reliable"),
            "_lossy": inner.createDataChannel("_lossy", ordered=False, maxRetransmits=0),
        }

    async def open(self) -> None:
        """Make the first offer; the client counts as connected when this connection is."""
        async with self._turn:
            await self._negotiate()
            await self.connection.settled()

    async def take(self, owner: Member, track: str) -> bool:
        """Begin to send a track; return whether it had not been sent before."""
        async with self._turn:
            if track in self._senders or track not in owner.tracks:
                return False
            source = owner.tracks[track]
            transceiver = self.connection.inner.addTransceiver(source.kind, direction="sendonly")
            # By these names a client knows whose track it is.
            transceiver.sender._stream_id = f"{owner.info.sid}|{track}"
            transceiver.sender._track_id = track
            self._senders[track] = transceiver.sender
            await self._negotiate()
            source.add(transceiver)
            await source.ask_for_key_frame()
        return True

    def leave(self, owner: Member, track: str) -> None:
        """Send a track no longer."""
        sender = self._senders.pop(track, None)
        if sender is not None and track in owner.tracks:
            owner.tracks[track].remove(sender)

    def deliver(self, label: str, packet: bytes) -> None:
        """Send a data packet, if that is possible yet."""
        channel = self._channels[label]
        if channel.readyState == "open":
            channel.send(packet)

    def answered(self, sdp: str) -> None:
        """Take the client's answer to the last offer."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(sdp)

    async def _negotiate(self) -> None:
        self._answer = asyncio.get_running_loop().create_future()
        await self._say(await self.connection.offer())
        async with asyncio.timeout(ANSWER_LIMIT_S):
            await self.connection.describe_far(await self._answer, "answer")
