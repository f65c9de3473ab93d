"""WHEP (draft-ietf-wish-whep) to watch a session, and WHIP (RFC 9725) to feed one its inputs.

For standard tools: nothing but SDP over HTTP. Both know no events, so the playhead of whoever
watches by WHEP is what was sent.
"""

from http import HTTPStatus
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from reverie.rtc.access import authorized, check_drives
from reverie.rtc.edge import Edge
from reverie.rtc.errors import HttpRefusedError
from reverie.rtc.forwarding import own_path
from reverie.rtc.http_json import read_body
from reverie.rtc.negotiation import Wishes
from reverie.rtc.offer import Offer, bad_offer, read_offer
from reverie.rtc.peers import PeerRoom
from reverie.rtc.sdp_fragment import KIND as FRAGMENT
from reverie.rtc.sdp_fragment import read_fragment, write_fragment
from reverie.rtc.signalling import peer_of
from reverie.rtc.webrtc import Manners, WebRtcPeer
from reverie.sessions import HostedSession, Role

SDP = "application/sdp"

Kind = Literal["whep", "whip"]

_SAFE = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


class WhipRoutes:
    """Handlers of `/v1/sessions/{id}/whep` and `/whip`; each kind has its own."""

    def __init__(self, edge: Edge, room: PeerRoom, kind: Kind) -> None:
        self._edge = edge
        self._room = room
        self._kind = kind

    async def options(self, _: Request) -> Response:
        """Say what may be posted."""
        return Response(headers={"Accept-Post": SDP})

    async def open(self, request: Request) -> Response:
        """Answer an offer."""
        if not self._edge.options.rtc.enabled:
            text = "WebRTC is switched off here (server.rtc.enabled)"
            raise HttpRefusedError(HTTPStatus.NOT_FOUND, "no_webrtc", text)
        hosted, allowed = authorized(self._edge, request, str(request.path_params["id"]))
        if self._kind == "whip":
            check_drives(allowed)
        offer = read_offer(await self._text(request, SDP))
        self._edge.check_rate("offers", request)
        address = self._edge.addresses.of(request)
        open_peer = self._watch if self._kind == "whep" else self._feed
        peer = await open_peer(hosted, offer, address)
        response = Response(peer.negotiated.answer, HTTPStatus.CREATED, _SAFE, SDP)
        location = own_path(request, f"/v1/sessions/{hosted.id}/{self._kind}/{peer.id}")
        response.headers["Location"] = location
        response.headers["ETag"] = _tag(peer)
        for server in self._room.servers.for_user(hosted.id):
            for link in server.as_links():
                response.headers.append("Link", link)
        return response

    async def patch(self, request: Request) -> Response:
        """Take more candidates (204), or restart ICE (200)."""
        peer = peer_of(self._edge, self._room, request)
        condition = request.headers.get("if-match")
        if condition is None:
            text = "PATCH needs If-Match: the ETag of the answer, or * to restart ICE"
            raise HttpRefusedError(HTTPStatus.PRECONDITION_REQUIRED, "no_etag", text)
        if condition.strip() not in ("*", _tag(peer)):
            text = "the path has been laid anew meanwhile"
            raise HttpRefusedError(HTTPStatus.PRECONDITION_FAILED, "other_etag", text)
        end = read_fragment(await self._text(request, FRAGMENT))
        if end.ufrag in ("", peer.negotiated.route.remote_ufrag):
            await peer.add_candidates(end.candidates)
            return Response(status_code=HTTPStatus.NO_CONTENT)
        self._edge.check_rate("offers", request)
        own = await peer.restart(end)
        text = write_fragment(own, peer.negotiated.offer.mids)
        return Response(text, HTTPStatus.OK, {**_SAFE, "ETag": _tag(peer)}, FRAGMENT)

    async def delete(self, request: Request) -> Response:
        """End a peer. Its ETag does not matter."""
        peer_of(self._edge, self._room, request).leave()
        return Response(status_code=HTTPStatus.OK)

    async def _watch(self, hosted: HostedSession, offer: Offer, address: str) -> WebRtcPeer:
        _check_directions(offer, gives=False)
        wishes = Wishes(video=offer.has("video"), audio=hosted.has_sound)
        manners = Manners(talks=False)
        return await self._room.open(hosted, Role.VIEWER, offer, wishes, manners, address)

    async def _feed(self, hosted: HostedSession, offer: Offer, address: str) -> WebRtcPeer:
        _check_directions(offer, gives=True)
        inputs = hosted.view.inputs
        wishes = Wishes(
            video_inputs=[each.name for each in inputs if each.kind == "video"],
            audio_inputs=[each.name for each in inputs if each.kind == "audio"],
        )
        if not (
            (offer.has("video") and wishes.video_inputs)
            or (offer.has("audio") and wishes.audio_inputs)
        ):
            text = "the program takes none of what is offered"
            raise HttpRefusedError(HTTPStatus.NOT_ACCEPTABLE, "no_inputs", text, field="sdp")
        manners = Manners(talks=False, watches=False)
        return await self._room.open(hosted, Role.DRIVER, offer, wishes, manners, address)

    async def _text(self, request: Request, kind: str) -> str:
        body = await read_body(request, self._edge.options)
        given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if given != kind:
            text = f"the body has to be {kind}"
            status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
            raise HttpRefusedError(status, "wrong_media_type", text, field="Content-Type")
        try:
            return body.decode()
        except UnicodeDecodeError:
            raise bad_offer("the body is no UTF-8") from None


def _check_directions(offer: Offer, *, gives: bool) -> None:
    for section in offer.sections:
        if section.kind != "application" and not (section.gives if gives else section.wants):
            wanted = "sendonly" if gives else "recvonly"
            raise bad_offer(f"each section is {wanted} or sendrecv")


def _tag(peer: WebRtcPeer) -> str:
    """Return the entity tag of a peer's path."""
    return f'"{peer.id}-{peer.paths}"'
