"""Offers and answers over HTTP, for the page and for programs; `whip.py` has the standard forms."""

from http import HTTPStatus
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from reverie.rtc.app_context import AppContext
from reverie.rtc.forwarding import own_path
from reverie.rtc.http.auth import authorized, check_drives
from reverie.rtc.http.json_bodies import json_response, parsed, read_object
from reverie.rtc.webrtc.ice import parse_candidate
from reverie.rtc.webrtc.negotiation import MediaPreferences, answer_to_restart
from reverie.rtc.webrtc.offer import check_restart, read_offer
from reverie.rtc.webrtc.peer import PeerKind, WebRtcPeer
from reverie.rtc.webrtc.peer_registry import PeerRegistry
from reverie.rtc.wire.errors import HttpRefusedError
from reverie.sessions import Role, ServerSession

MAX_CANDIDATES = 64

Sdp = Annotated[str, Field(max_length=2**20)]


class _OfferBody(BaseModel):
    """An offer."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    type: Literal["offer"]
    sdp: Sdp
    role: Literal["driver", "viewer"] = "driver"


class _Candidate(BaseModel):
    """What `RTCIceCandidate.toJSON` gives."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    candidate: Annotated[str, Field(max_length=1024)]
    sdpMid: Annotated[str, Field(max_length=64)] | None = None  # noqa: N815
    sdpMLineIndex: Annotated[int, Field(ge=0, lt=64)] | None = None  # noqa: N815


class _Candidates(BaseModel):
    """More candidates of a peer; an empty one means that there are no more."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    candidates: Annotated[list[_Candidate], Field(max_length=MAX_CANDIDATES)]


class _Restart(BaseModel):
    """A new offer for the same peer, to restart ICE."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    type: Literal["offer"]
    sdp: Sdp


class Signalling:
    """Handlers of `/v1/ice` and `/v1/sessions/{id}/webrtc`."""

    def __init__(self, context: AppContext, peers: PeerRegistry) -> None:
        self._context = context
        self._peers = peers

    async def ice(self, request: Request) -> Response:
        """Return the ICE configuration, with credentials for a client that has a session."""
        servers = self._peers.servers
        session = request.query_params.get("session")
        known = servers.open_to_all()
        if session is not None:
            server_session, _ = authorized(self._context, request, session)
            known = servers.for_user(server_session.id)
        body = {
            "ice_servers": [each.as_json() for each in known],
            "relay_only": servers.relay_only,
        }
        return json_response(body)

    async def open(self, request: Request) -> Response:
        """Answer an offer."""
        server_session, allowed = self._session(request)
        value = await read_object(request, self._context.options)
        body = parsed(_OfferBody, value)
        role = Role(body.role)
        if role is Role.DRIVER:
            check_drives(allowed)
        self._context.check_rate("offers", request)
        offer = read_offer(body.sdp)
        if offer.first("video") is None:
            text = "the offer has no section for video that receives"
            raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "no_video", text, field="sdp")
        if not offer.has_channels:
            text = "the offer has no section for data channels, which `events` needs"
            raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "no_events", text, field="sdp")
        preferences, address = (
            preferences_of(server_session, role),
            self._context.addresses.of(request),
        )
        peer = await self._peers.open(server_session, role, offer, preferences, PeerKind(), address)
        codec = peer.negotiated.codec
        answer = {
            "type": "answer",
            "sdp": peer.negotiated.answer,
            "id": peer.id,
            "codec": codec.value if codec else None,
        }
        location = own_path(request, f"/v1/sessions/{server_session.id}/webrtc/{peer.id}")
        return json_response(answer, HTTPStatus.CREATED, {"Location": location})

    async def patch(self, request: Request) -> Response:
        """Take more candidates, or restart ICE."""
        peer = self._peer(request)
        value = await read_object(request, self._context.options)
        form = _Restart if "sdp" in value else _Candidates
        body = parsed(form, value)
        if isinstance(body, _Restart):
            self._context.check_rate("offers", request)
            offer = read_offer(body.sdp)
            check_restart(offer, peer.negotiated.offer, peer.negotiated.route.remote_ufrag)
            end = await peer.restart(offer.end)
            answer = answer_to_restart(peer.negotiated.answer, end)
            return json_response({"type": "answer", "sdp": answer})
        assert isinstance(body, _Candidates)
        found = [parse_candidate(each.candidate) for each in body.candidates if each.candidate]
        await peer.add_candidates([each for each in found if each is not None])
        return Response(status_code=HTTPStatus.NO_CONTENT)

    async def show(self, request: Request) -> Response:
        """Show the state of a peer, or why it has ended, which may not have reached it."""
        return json_response({"id": self._peer(request).id, "state": self._peer(request).state})

    async def delete(self, request: Request) -> Response:
        """End a peer."""
        self._peer(request).leave()
        return Response(status_code=HTTPStatus.NO_CONTENT)

    def _session(self, request: Request) -> tuple[ServerSession, Role]:
        if not self._context.options.rtc.enabled:
            text = "WebRTC is disabled on this server (server.rtc.enabled)"
            raise HttpRefusedError(HTTPStatus.NOT_FOUND, "no_webrtc", text)
        return authorized(self._context, request, str(request.path_params["id"]))

    def _peer(self, request: Request) -> WebRtcPeer:
        return peer_of(self._context, self._peers, request)


def peer_of(context: AppContext, peers: PeerRegistry, request: Request) -> WebRtcPeer:
    """Return the peer that a request names, if its token allows that.

    Raises:
        HttpRefusedError: there is none, or the token only watches and the peer drives.
        SessionEndedError: the session has ended.
        UnknownSessionError: there is no such session, or the token belongs to another one.
    """
    server_session, allowed = authorized(context, request, str(request.path_params["id"]))
    peer = peers.find(server_session.id, str(request.path_params["peer"]))
    if peer.role is Role.DRIVER:
        check_drives(allowed)
    return peer


def preferences_of(server_session: ServerSession, role: Role) -> MediaPreferences:
    """Return the media that the server sends and receives for a role."""
    inputs = server_session.view.inputs if role is Role.DRIVER else ()
    return MediaPreferences(
        video=True,
        audio=server_session.has_sound,
        video_inputs=[each.name for each in inputs if each.kind == "video"],
        audio_inputs=[each.name for each in inputs if each.kind == "audio"],
    )
