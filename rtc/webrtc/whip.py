"""WHEP (draft-ietf-wish-whep) to watch a session, and WHIP (RFC 9725) to feed one its inputs.

For standard tools, which use nothing but SDP over HTTP. Neither has events, so media that was sent
to a WHEP viewer counts as seen.
"""

from http import HTTPStatus
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from reverie.rtc.app_context import AppContext
from reverie.rtc.forwarding import own_path
from reverie.rtc.http.auth import authorized, check_drives
from reverie.rtc.http.json_bodies import read_body
from reverie.rtc.webrtc.negotiation import MediaPreferences
from reverie.rtc.webrtc.offer import Offer, bad_offer, read_offer
from reverie.rtc.webrtc.peer import PeerKind, WebRtcPeer
from reverie.rtc.webrtc.peer_registry import PeerRegistry
from reverie.rtc.webrtc.sdp_fragment import KIND as FRAGMENT
from reverie.rtc.webrtc.sdp_fragment import read_fragment, write_fragment
from reverie.rtc.webrtc.signalling import peer_of
from reverie.rtc.wire.errors import HttpRefusedError
from reverie.sessions import Role, ServerSession

SDP = "application/sdp"

Kind = Literal["whep", "whip"]

_SAFE = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


class WhipRoutes:
    """Handlers of `/v1/sessions/{id}/whep` and `/whip`; each kind has its own."""

    def __init__(self, context: AppContext, peers: PeerRegistry, kind: Kind) -> None:
        self._context = context
        self._peers = peers
        self._kind = kind

    async def options(self, _: Request) -> Response:
        """Tell the media type of an offer."""
        return Response(headers={"Accept-Post": SDP})

    async def open(self, request: Request) -> Response:
        """Answer an offer."""
        if not self._context.options.rtc.enabled:
            text = "WebRTC is disabled on this server (server.rtc.enabled)"
            raise HttpRefusedError(HTTPStatus.NOT_FOUND, "no_webrtc", text)
        server_session, allowed = authorized(self._context, request, str(request.path_params["id"]))
        if self._kind == "whip":
            check_drives(allowed)
        offer = read_offer(await self._text(request, SDP))
        self._context.check_rate("offers", request)
        address = self._context.addresses.of(request)
        open_peer = self._watch if self._kind == "whep" else self._feed
        peer = await open_peer(server_session, offer, address)
        response = Response(peer.negotiated.answer, HTTPStatus.CREATED, _SAFE, SDP)
        location = own_path(request, f"/v1/sessions/{server_session.id}/{self._kind}/{peer.id}")
        response.headers["Location"] = location
        response.headers["ETag"] = _tag(peer)
        for server in self._peers.servers.for_user(server_session.id):
            for link in server.as_links():
                response.headers.append("Link", link)
        return response

    async def patch(self, request: Request) -> Response:
        """Take more candidates (204), or restart ICE (200)."""
        peer = peer_of(self._context, self._peers, request)
        condition = request.headers.get("if-match")
        if condition is None:
            text = "PATCH needs If-Match: the ETag of the answer, or * to restart ICE"
            raise HttpRefusedError(HTTPStatus.PRECONDITION_REQUIRED, "no_etag", text)
        if condition.strip() not in ("*", _tag(peer)):
            text = "ICE was restarted meanwhile"
            raise HttpRefusedError(HTTPStatus.PRECONDITION_FAILED, "other_etag", text)
        end = read_fragment(await self._text(request, FRAGMENT))
        if end.ufrag in ("", peer.negotiated.route.remote_ufrag):
            await peer.add_candidates(end.candidates)
            return Response(status_code=HTTPStatus.NO_CONTENT)
        self._context.check_rate("offers", request)
        own = await peer.restart(end)
        text = write_fragment(own, peer.negotiated.offer.mids)
        return Response(text, HTTPStatus.OK, {**_SAFE, "ETag": _tag(peer)}, FRAGMENT)

    async def delete(self, request: Request) -> Response:
        """End a peer. Its ETag does not matter."""
        peer_of(self._context, self._peers, request).leave()
        return Response(status_code=HTTPStatus.OK)

    async def _watch(self, server_session: ServerSession, offer: Offer, address: str) -> WebRtcPeer:
        _check_directions(offer, gives=False)
        preferences = MediaPreferences(video=offer.has("video"), audio=server_session.has_sound)
        peer_kind = PeerKind(talks=False)
        return await self._peers.open(
            server_session, Role.VIEWER, offer, preferences, peer_kind, address
        )

    async def _feed(self, server_session: ServerSession, offer: Offer, address: str) -> WebRtcPeer:
        _check_directions(offer, gives=True)
        inputs = server_session.view.inputs
        preferences = MediaPreferences(
            video_inputs=[each.name for each in inputs if each.kind == "video"],
            audio_inputs=[each.name for each in inputs if each.kind == "audio"],
        )
        if not (
            (offer.has("video") and preferences.video_inputs)
            or (offer.has("audio") and preferences.audio_inputs)
        ):
            text = "the program has no input for the offered media"
            raise HttpRefusedError(HTTPStatus.NOT_ACCEPTABLE, "no_inputs", text, field="sdp")
        peer_kind = PeerKind(talks=False, watches=False)
        return await self._peers.open(
            server_session, Role.DRIVER, offer, preferences, peer_kind, address
        )

    async def _text(self, request: Request, kind: str) -> str:
        body = await read_body(request, self._context.options)
        given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if given != kind:
            text = f"the body must be {kind}"
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
            raise bad_offer(f"each section must be {wanted} or sendrecv")


def _tag(peer: WebRtcPeer) -> str:
    """Return the entity tag of a peer's path."""
    return f'"{peer.id}-{peer.paths}"'
