"""`POST /faults/{fault}?room=&identity=`: how a test has something go wrong."""

from aiohttp import web
from livekit.protocol import models, rtc

from livekit_server.peer import Peer
from livekit_server.rooms import Rooms
from livekit_server.tokens import Tokens


class FaultApi:
    """Breaks things; its answers come once they are broken.

    Those that act on a participant who is in the room now, and 404 when it is not:

    - `sever`: its signalling breaks off; its client will try to come back.
    - `fail_media`: its peer connections are closed, and its signalling is not.
    - `unpublish`: all that it publishes is lost, and its client is told so; the SDK ignores it, and
      what it sends on is neither handed on nor reported.
    - `dismiss`, with `kind`, the name of a `DisconnectReason`: it is told to go for that reason.
    - `refresh`: it gets a fresh token, and no other is accepted from it any more.

    Those that hold from now on, also over reconnections:

    - `lose` and `double`, with `kind` and `count`: data packets that do not arrive, or twice.
    - `ignore_tracks`, with `count`: tracks of which the server does not hear.
    - `shut_out` and `let_in`: whether it can connect.
    """

    def __init__(self, tokens: Tokens, rooms: Rooms) -> None:
        self._tokens, self._rooms = tokens, rooms

    async def serve(self, request: web.Request) -> web.Response:
        """Do one."""
        place = request.query["room"], request.query["identity"]
        faults = self._rooms.faults[place]
        count = int(request.query.get("count", "1"))
        match request.match_info["fault"]:
            case "lose":
                faults.lost[request.query["kind"]] += count
            case "double":
                faults.doubled[request.query["kind"]] += count
            case "ignore_tracks":
                faults.ignored_tracks += count
            case "shut_out":
                faults.is_shut_out = True
            case "let_in":
                faults.is_shut_out = False
            case fault:
                peer = self._rooms.named(place[0]).members.get(place[1])
                if peer is None:
                    raise web.HTTPNotFound(text=f"{place[1]} is not in {place[0]}")
                await self._break(fault, peer, request.query["kind"])
        return web.Response(text="broken")

    async def _break(self, fault: str, peer: Peer, kind: str) -> None:
        match fault:
            case "dismiss":
                await peer.dismiss(models.DisconnectReason.Value(kind))
            case "sever":
                peer.fail_signalling()
            case "fail_media":
                await peer.fail_media()
            case "unpublish":
                await _unpublish(peer)
            case "refresh":
                fresh = self._tokens.made(peer.claims)
                await peer.send(rtc.SignalResponse(refresh_token=fresh))
                self._tokens.revoked.add(peer.claims.token)
            case _:
                raise web.HTTPNotFound(text=f"there is no fault {fault}")


async def _unpublish(peer: Peer) -> None:
    lost = list(peer.tracks)
    await peer.lose_tracks(lost)
    for track in lost:
        gone = rtc.TrackUnpublishedResponse(track_sid=track)
        await peer.send(rtc.SignalResponse(track_unpublished=gone))
