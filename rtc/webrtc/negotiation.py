"""From an offer to an answer and its connection. Nothing of a session is touched here."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal

from aiortc import (
    RTCConfiguration,
    RTCPeerConnection,
    RTCRtpCapabilities,
    RTCRtpSender,
    RTCRtpTransceiver,
    RTCSessionDescription,
)
from aiortc.exceptions import (
    InternalError,
    InvalidAccessError,
    InvalidStateError,
    OperationError,
)
from aiortc.rtcicetransport import RTCIceParameters
from aiortc.rtcrtpparameters import RTCRtpCodecCapability
from aiortc.sdp import SessionDescription

from reverie.media import Codec
from reverie.rtc.webrtc.aiortc_seams import (
    ice_transport_of,
    quicken_data_channels,
    within_ports,
)
from reverie.rtc.webrtc.candidates import CandidateFilter, Reach
from reverie.rtc.webrtc.ice import IceEnd
from reverie.rtc.webrtc.ice_route import IceRoute
from reverie.rtc.webrtc.offer import Offer, Section, bad_offer
from reverie.rtc.webrtc_options import WebRtcOptions
from reverie.rtc.wire.errors import HttpRefusedError

Direction = Literal["sendrecv", "sendonly", "recvonly", "inactive"]

_REFUSED = (
    ValueError,
    AssertionError,
    LookupError,
    TypeError,
    AttributeError,
    InternalError,
    InvalidAccessError,
    InvalidStateError,
    OperationError,
)
_MIME = {Codec.VP8: "video/vp8", Codec.H264: "video/h264"}
_CONSTRAINED_BASELINE = "42e01f"
_AS_THE_SPS_SAYS = "42c01f"
"""x264 sets the first two constraint flags of constrained baseline, and no third."""


@dataclass(frozen=True, slots=True)
class MediaPreferences:
    """What the server sends and receives in the sections of an offer.

    Attributes:
        video: send pictures in the first section that accepts them.
        audio: likewise sound.
        video_inputs: input streams for the sections that send pictures, in order.
        audio_inputs: likewise for sound.
    """

    video: bool = False
    audio: bool = False
    video_inputs: Sequence[str] = ()
    audio_inputs: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class NegotiatedPeer:
    """A connection that waits for its peer.

    Attributes:
        answer: the SDP.
        codec: of the pictures that are sent; None without pictures.
        inputs: the input stream that each receiving transceiver feeds.
    """

    connection: RTCPeerConnection
    offer: Offer
    answer: str
    route: IceRoute
    codec: Codec | None
    video: RTCRtpSender | None
    audio: RTCRtpSender | None
    inputs: dict[str, RTCRtpTransceiver]


async def negotiate(
    offer: Offer,
    preferences: MediaPreferences,
    configuration: RTCConfiguration,
    options: WebRtcOptions,
    reach: Reach,
) -> NegotiatedPeer:
    """Return a connection for an offer, with its answer. If this fails, none is left.

    Args:
        offer: of the peer.
        preferences: what the server sends and receives.
        configuration: the ICE servers of this server.
        options: ports and times.
        reach: which addresses the peer may have.

    Raises:
        HttpRefusedError: the offer cannot be answered, or no candidate was gathered in time.
    """
    codec = _choose(offer) if preferences.video else None
    quicken_data_channels()
    connection = RTCPeerConnection(configuration)
    candidates = CandidateFilter(reach)
    try:
        plan = _Plan(connection, preferences, codec)
        for section in offer.sections:
            plan.add(section)
        with within_ports(options.ports):
            async with asyncio.timeout(options.gather_timeout_s):
                sdp = candidates.applied(offer.sdp)
                await connection.setRemoteDescription(RTCSessionDescription(sdp, "offer"))
                transport = ice_transport_of(connection)
                route = IceRoute(transport, offer.end.ufrag, reach, candidates)
                await connection.setLocalDescription(await connection.createAnswer())
                route.pace()
        if not ice_transport_of(connection).iceGatherer.getLocalCandidates():
            raise no_candidates()
    except TimeoutError:
        await connection.close()
        raise no_candidates() from None
    except _REFUSED as error:
        await connection.close()
        raise bad_offer(f"the offer cannot be answered: {type(error).__name__}") from error
    except BaseException:
        await connection.close()
        raise
    return NegotiatedPeer(
        connection=connection,
        answer=_with_our_profile(connection.localDescription.sdp),
        offer=offer,
        route=route,
        codec=codec,
        video=plan.video,
        audio=plan.audio,
        inputs=plan.inputs,
    )


def no_candidates() -> HttpRefusedError:
    """Return the refusal of a server without any candidate."""
    text = (
        "the server has no address or port for a peer: check the network, server.rtc.ports, and "
        "whether the STUN and TURN servers answer in time (gather_timeout_s)"
    )
    return HttpRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "no_candidates", text, retry_after_s=5)


class _Plan:
    """Adds a transceiver for each section, in their order.

    aiortc finds the transceiver of a section by the order. Codecs are chosen before it reads the
    offer, because they are fixed afterwards.
    """

    def __init__(
        self, connection: RTCPeerConnection, preferences: MediaPreferences, codec: Codec | None
    ) -> None:
        self.video: RTCRtpSender | None = None
        self.audio: RTCRtpSender | None = None
        self.inputs: dict[str, RTCRtpTransceiver] = {}
        self._connection = connection
        self._preferences = preferences
        self._codec = codec
        self._sources = {
            "video": list(preferences.video_inputs),
            "audio": list(preferences.audio_inputs),
        }

    def add(self, section: Section) -> None:
        """Plan for the next section."""
        if section.kind == "application":
            return
        is_video = section.kind == "video"
        if is_video:
            send = section.wants and self._codec is not None and self.video is None
        else:
            send = section.wants and section.opus and self._preferences.audio and self.audio is None
        sources = self._sources[section.kind]
        receive = section.gives and bool(sources)
        transceiver = self._connection.addTransceiver(section.kind, _direction(send, receive))
        if is_video and self._codec is not None and send:
            transceiver.setCodecPreferences(_preferred(self._codec))
            self.video = transceiver.sender
        elif send:
            self.audio = transceiver.sender
        if receive:
            self.inputs[sources.pop(0)] = transceiver


def answer_to_restart(answer: str, end: IceEnd) -> str:
    """Return the earlier answer with a new end of the path."""
    description = SessionDescription.parse(answer)
    for media in description.media:
        media.ice = RTCIceParameters(end.ufrag, end.password)
        media.ice_candidates = list(end.candidates)
        media.ice_candidates_complete = True
    return str(description)


def _choose(offer: Offer) -> Codec:
    section = offer.first("video")
    if section is None:
        raise HttpRefusedError(
            HTTPStatus.BAD_REQUEST,
            "no_video",
            "the offer has no section for video that receives",
            field="sdp",
        )
    if not section.codecs:
        raise HttpRefusedError(
            HTTPStatus.NOT_ACCEPTABLE,
            "no_common_codec",
            "this server sends VP8 and H.264 constrained baseline with packetization-mode=1",
            field="sdp",
        )
    return section.codecs[0]


def _preferred(codec: Codec) -> list[RTCRtpCodecCapability]:
    """Return aiortc's names of a codec: the exact profile first, then one that includes it."""
    known: RTCRtpCapabilities = RTCRtpSender.getCapabilities("video")
    ours = [each for each in known.codecs if each.mimeType.lower() == _MIME[codec]]
    ours.sort(key=lambda each: each.parameters.get("profile-level-id") != _CONSTRAINED_BASELINE)
    return ours + [each for each in known.codecs if each.mimeType.lower() == "video/rtx"]


def _direction(send: bool, receive: bool) -> Direction:
    if send and receive:
        return "sendrecv"
    if send:
        return "sendonly"
    return "recvonly" if receive else "inactive"


def _with_our_profile(sdp: str) -> str:
    """Return the answer with the profile-level-id that our streams carry."""
    wanted = re.compile(rf"(profile-level-id=){_CONSTRAINED_BASELINE}", re.IGNORECASE)
    return wanted.sub(rf"\g<1>{_AS_THE_SPS_SAYS}", sdp)
