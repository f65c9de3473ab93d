"""All rooms, and how participants come into them and go."""

from collections import defaultdict
from collections.abc import Iterator

from aiohttp import web
from livekit.protocol import models, rtc

from livekit_server.faults import Faults
from livekit_server.peer import Peer
from livekit_server.room import Room
from livekit_server.signalling import Signalling
from livekit_server.tokens import Claims


class Rooms:
    """The rooms of a server, made when first heard of.

    Attributes:
        faults: what each identity has coming, by room and identity.
    """

    def __init__(self) -> None:
        self.faults: defaultdict[tuple[str, str], Faults] = defaultdict(Faults)
        self._rooms: dict[str, Room[Peer]] = {}

    def __iter__(self) -> Iterator[Room[Peer]]:
        return iter(list(self._rooms.values()))

    def __contains__(self, name: str) -> bool:
        return name in self._rooms

    def named(self, name: str) -> Room[Peer]:
        """Return a room, which may be new."""
        return self._rooms.setdefault(name, Room[Peer](name))

    def forget(self, name: str) -> list[Peer]:
        """Delete a room; return who was in it, whom the caller sends away."""
        room = self._rooms.pop(name, None)
        return list(room.members.values()) if room is not None else []

    async def join(self, claims: Claims, request: web.Request) -> web.WebSocketResponse:
        """Have a participant in its room until it goes; who had its identity has to leave.

        Raises:
            web.HTTPServiceUnavailable: a test has shut it out.
        """
        faults = self.faults[claims.room, claims.identity]
        if faults.is_shut_out:
            raise web.HTTPServiceUnavailable(text="a test has shut it out")
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if request.query.get("reconnect") == "1":
            return await _ask_to_start_anew(socket)
        room = self.named(claims.room)
        peer = Peer(room, claims, faults, request, socket)
        while (former := room.members.pop(claims.identity, None)) is not None:
            await former.dismiss(models.DisconnectReason.DUPLICATE_IDENTITY)
            await former.close()
        room.members[claims.identity] = peer
        try:
            await peer.run(Signalling())
        finally:
            if room.members.get(claims.identity) is peer:
                del room.members[claims.identity]
            await peer.close()
        return socket


async def _ask_to_start_anew(socket: web.WebSocketResponse) -> web.WebSocketResponse:
    """Refuse to resume a connection; the client makes a whole new one."""
    leave = rtc.LeaveRequest(
        reason=models.DisconnectReason.STATE_MISMATCH, action=rtc.LeaveRequest.RECONNECT
    )
    await socket.send_bytes(rtc.SignalResponse(leave=leave).SerializeToString())
    await socket.close()
    return socket
