"""A participant: its two peer connections, what it is told, and how long it stays."""

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Protocol

from aiohttp import WSMsgType, web
from livekit.protocol import models, rtc

from livekit_server.faults import Faults
from livekit_server.forwarder import Forwarder
from livekit_server.publisher import Publisher
from livekit_server.room import Member, Room, new_sid
from livekit_server.subscriber import Subscriber
from livekit_server.tokens import Claims

log = logging.getLogger(__name__)


class _EndedError(Exception):
    """The client has gone; ends what was being done for it."""


class Handler(Protocol):
    """Answers what a client says."""

    async def welcome(self, peer: "Peer") -> None:
        """Tell a participant where it is."""

    async def handle(self, peer: "Peer", request: rtc.SignalRequest) -> None:
        """Do what a client asks for."""


class Peer:
    """Serves one participant for as long as its signalling lasts.

    Args:
        request: by which it came; what it asks for in the address counts.

    Attributes:
        info: what everybody is told of it.
    """

    def __init__(
        self,
        room: "Room[Peer]",
        claims: Claims,
        faults: Faults,
        request: web.Request,
        socket: web.WebSocketResponse,
    ) -> None:
        self.room, self.claims, self.faults = room, claims, faults
        self.hidden = claims.hidden
        self.info = _described(claims, int(request.query.get("client_protocol", "0")))
        self.publisher = Publisher(self._on_track, self._on_packet)
        self.subscriber = Subscriber(self._offer)
        self.subscriber.connection.inner.on("connectionstatechange", self._on_state)
        self._offers = 0
        self._takes_all = request.query.get("auto_subscribe", "1") == "1"
        self._request, self._socket = request, socket
        self._tasks = asyncio.TaskGroup()
        self._is_over = False

    @property
    def tracks(self) -> dict[str, Forwarder]:
        """Return what it publishes, by the track's id."""
        return self.publisher.tracks

    async def run(self, handler: Handler) -> None:
        """Serve until the client goes or is sent away."""
        try:
            async with self._tasks:
                try:
                    await handler.welcome(self)
                    async for message in self._socket:
                        if message.type == WSMsgType.BINARY:
                            request = rtc.SignalRequest.FromString(message.data)
                            if request.WhichOneof("message") == "leave":
                                break
                            await _logged(handler.handle(self, request))
                finally:
                    self._is_over = True
                raise _EndedError
        except* _EndedError:
            pass

    async def close(self) -> None:
        """Tell the others that it has gone, and close its connections; again changes nothing."""
        if self.info.state != models.ParticipantInfo.DISCONNECTED:
            self.info.state = models.ParticipantInfo.DISCONNECTED
            await self.room.announce(self)
        await self.fail_media()
        await self._socket.close()

    async def send(self, response: rtc.SignalResponse) -> None:
        """Tell its client; what cannot be told any more is dropped."""
        log.debug("-> %s %s", self.info.identity, response.WhichOneof("message"))
        try:
            await self._socket.send_bytes(response.SerializeToString())
        except ConnectionError:
            log.debug("%s has gone", self.info.identity)

    def deliver(self, label: str, packet: bytes) -> None:
        """Send it a data packet."""
        self.subscriber.deliver(label, packet)

    def offer_track(self, owner: Member, track: str) -> None:
        """Begin to send it a track of another's, unless it takes none by itself."""
        if self._takes_all:
            self.take_track(owner, track)

    def take_track(self, owner: Member, track: str) -> None:
        """Begin to send it a track of another's."""
        self.spawn(self._take(owner, track))

    async def lose_tracks(self, sids: list[str]) -> None:
        """Publish some of its tracks no longer, and tell the others."""
        for track in [each for each in self.info.tracks if each.sid in sids]:
            self.info.tracks.remove(track)
            forwarder = self.tracks.pop(track.sid, None)
            if forwarder is not None:
                forwarder.close()
        if sids:
            await self.room.announce(self)

    async def dismiss(self, reason: models.DisconnectReason) -> None:
        """Tell its client to go, and not to come back."""
        leave = rtc.LeaveRequest(reason=reason, action=rtc.LeaveRequest.DISCONNECT)
        await self.send(rtc.SignalResponse(leave=leave))
        await self._socket.close()

    def fail_signalling(self) -> None:
        """Break its signalling off, without a word."""
        if self._request.transport is not None:
            self._request.transport.abort()

    async def fail_media(self) -> None:
        """Close its peer connections, and leave its signalling be."""
        await self.publisher.connection.close()
        await self.subscriber.connection.close()

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Do something for as long as the participant stays; a failure is logged."""
        if self._is_over:
            work.close()
        else:
            self._tasks.create_task(_logged(work))

    async def _take(self, owner: Member, track: str) -> None:
        if await self.subscriber.take(owner, track):
            taken = rtc.TrackSubscribed(track_sid=track)
            await owner.send(rtc.SignalResponse(track_subscribed=taken))

    async def _offer(self, sdp: str) -> None:
        self._offers += 1
        offer = rtc.SessionDescription(type="offer", sdp=sdp, id=self._offers)
        await self.send(rtc.SignalResponse(offer=offer))

    def _on_track(self, info: models.TrackInfo) -> None:
        self.info.tracks.append(info)
        self.info.is_publisher = True
        self.spawn(self._publish(info.sid))

    async def _publish(self, track: str) -> None:
        await self.room.announce(self)
        for other in self.room.others(self):
            other.offer_track(self, track)

    def _on_packet(self, label: str, packet: models.DataPacket) -> None:
        kind = packet.WhichOneof("value") or ""
        log.debug("data %s of %s", kind, self.info.identity)
        for _ in range(self.faults.copies(kind)):
            self.room.relay(self, label, packet)
            packet.sequence = 0  # or a client would leave out what it has had already

    def _on_state(self) -> None:
        is_new = self.info.state in (models.ParticipantInfo.JOINING, models.ParticipantInfo.JOINED)
        if self.subscriber.connection.is_up and is_new:
            self.info.state = models.ParticipantInfo.ACTIVE
            self.spawn(self.room.announce(self))


def _described(claims: Claims, client_protocol: int) -> models.ParticipantInfo:
    now = time.time()
    may = models.ParticipantPermission(
        can_subscribe=True, can_publish=True, can_publish_data=True, can_update_metadata=True
    )
    return models.ParticipantInfo(
        sid=new_sid("PA"),
        identity=claims.identity,
        name=claims.name,
        metadata=claims.metadata,
        attributes=claims.attributes,
        state=models.ParticipantInfo.JOINED,
        kind=claims.kind.upper(),
        joined_at=int(now),
        joined_at_ms=int(now * 1000),
        version=1,
        client_protocol=client_protocol,
        permission=may,
    )


async def _logged(work: Coroutine[None, None, None]) -> None:
    """Do something; when it fails, the participant lives on, and the log says why."""
    try:
        await work
    except Exception:
        log.exception("what was done for a participant failed")
