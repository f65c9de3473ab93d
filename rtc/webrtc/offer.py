"""The offer of a peer: parsed and checked before anything is created for it.

The SDP comes from outside and its parser trusts its input, so every exception of the parser is a
`bad_offer`. So is an offer whose peer could never connect.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal

from aiortc.rtcrtpparameters import RTCRtpCodecParameters
from aiortc.sdp import H264Profile, MediaDescription, SessionDescription
from aiortc.sdp import parse_h264_profile_level_id as parse_profile

from reverie.media import Codec
from reverie.rtc.webrtc.ice import IceEnd, is_usable, without_names
from reverie.rtc.wire.errors import HttpRefusedError

MAX_SDP_CHARS = 100_000
MAX_SECTIONS = 16
MAX_CANDIDATES = 100
"""Each candidate is sent checks, whatever its address is."""
_BASELINE = (H264Profile.PROFILE_CONSTRAINED_BASELINE, H264Profile.PROFILE_BASELINE)
_PARSER_ERRORS = (
    ValueError,
    AssertionError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    StopIteration,
)


@dataclass(frozen=True, slots=True)
class Section:
    """One section of an offer, as the server sees it.

    Attributes:
        kind: `application` is for data channels.
        wants: the peer receives media in the section.
        gives: the peer sends media in the section.
        codecs: for video, what the server can send, the peer's favourite first.
        opus: for audio, whether the peer accepts Opus.
    """

    kind: Literal["video", "audio", "application"]
    wants: bool = False
    gives: bool = False
    codecs: tuple[Codec, ...] = ()
    opus: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer that can be answered.

    Attributes:
        sdp: without candidates that are names.
        mids: of the sections; a restart must not change them.
        fingerprints: of the peer's certificate.
        end: the peer's end of the path, which all sections share.
    """

    sdp: str
    sections: tuple[Section, ...]
    mids: tuple[str, ...]
    fingerprints: frozenset[str]
    end: IceEnd

    def first(self, kind: str) -> Section | None:
        """Return the first section of a kind in which the peer receives."""
        return next((each for each in self.sections if each.kind == kind and each.wants), None)

    def has(self, kind: str) -> bool:
        """Whether there is a section of a kind."""
        return any(each.kind == kind for each in self.sections)

    @property
    def has_channels(self) -> bool:
        """Whether there is a section for data channels."""
        return self.has("application")


def read_offer(sdp: str) -> Offer:
    """Return the offer in an SDP.

    Raises:
        HttpRefusedError: `bad_offer`, with the problem.
    """
    if len(sdp) > MAX_SDP_CHARS:
        raise bad_offer(f"an offer has at most {MAX_SDP_CHARS} characters", 413)
    kept = without_names(sdp)
    try:
        description = SessionDescription.parse(kept)
        media = description.media
        if len(media) > MAX_SECTIONS:
            raise bad_offer(f"an offer has at most {MAX_SECTIONS} sections")
        if sum(len(each.ice_candidates) for each in media) > MAX_CANDIDATES:
            raise bad_offer(f"an offer has at most {MAX_CANDIDATES} candidates")
        for each in media:
            _check(each)
        if not media:
            raise bad_offer("the offer has no section for media")
        if len(media) > 1 and not _is_bundled(description):
            raise bad_offer("the sections are not one BUNDLE group")
        sections = tuple(_section(each) for each in media)
        mids = tuple(each.rtp.muxId for each in media)
        fingerprints = _fingerprints(media)
        end = _end(media[0])
    except _PARSER_ERRORS as error:
        raise bad_offer("this SDP cannot be answered") from error
    return Offer(kept, sections, mids, fingerprints, end)


def bad_offer(text: str, status: int = HTTPStatus.BAD_REQUEST) -> HttpRefusedError:
    """Return the refusal of an offer."""
    return HttpRefusedError(status, "bad_offer", text, field="sdp")


def check_restart(offer: Offer, before: Offer, ufrag: str) -> None:
    """Check that an offer changes the path of an earlier one, and nothing else.

    Args:
        ufrag: the peer's, of the current path.

    Raises:
        HttpRefusedError: the offer changes more, or is no restart.
    """
    if (offer.mids, offer.fingerprints) != (before.mids, before.fingerprints):
        raise bad_offer("an ICE restart must not change sections or certificate")
    if offer.end.ufrag == ufrag:
        raise bad_offer("an ICE restart needs a new ice-ufrag")


def _is_bundled(description: SessionDescription) -> bool:
    mids = {each.rtp.muxId for each in description.media}
    return any(
        group.semantic == "BUNDLE" and mids <= {str(item) for item in group.items}
        for group in description.group
    )


def _fingerprints(media: Sequence[MediaDescription]) -> frozenset[str]:
    found = (each.dtls.fingerprints for each in media if each.dtls is not None)
    return frozenset(f"{one.algorithm} {one.value}".lower() for some in found for one in some)


def _end(media: MediaDescription) -> IceEnd:
    assert media.ice is not None
    candidates = tuple(each for each in media.ice_candidates if is_usable(each))
    return IceEnd(media.ice.usernameFragment or "", media.ice.password or "", candidates)


def _check(media: MediaDescription) -> None:
    if media.kind not in ("audio", "video", "application"):
        raise bad_offer("sections are of audio, video and application")
    if not (media.ice and media.ice.usernameFragment and media.ice.password):
        raise bad_offer("a section has no ice-ufrag and ice-pwd")
    if not (media.dtls and media.dtls.fingerprints):
        raise bad_offer("a section has no fingerprint")
    if not media.rtp.muxId:
        raise bad_offer("a section has no mid")
    if media.kind != "application" and not media.rtcp_mux:
        raise bad_offer("a section has no rtcp-mux")
    if media.kind == "application" and not (media.sctp_port or media.sctpmap):
        raise bad_offer("the section for data channels has no sctp-port")


def _section(media: MediaDescription) -> Section:
    direction = media.direction or "sendrecv"
    wants, gives = direction in ("recvonly", "sendrecv"), direction in ("sendonly", "sendrecv")
    if media.kind == "application":
        return Section("application")
    if media.kind == "audio":
        opus = any(codec.mimeType.lower() == "audio/opus" for codec in media.rtp.codecs)
        return Section("audio", wants, gives, opus=opus)
    ours = [_our_codec(codec) for codec in media.rtp.codecs]
    return Section("video", wants, gives, tuple(dict.fromkeys(each for each in ours if each)))


def _our_codec(codec: RTCRtpCodecParameters) -> Codec | None:
    kind = codec.mimeType.lower()
    if kind == "video/vp8":
        return Codec.VP8
    if kind != "video/h264" or str(codec.parameters.get("packetization-mode", "0")) != "1":
        return None
    try:
        profile, _ = parse_profile(str(codec.parameters.get("profile-level-id", "42e01f")))
    except ValueError:
        return None
    return Codec.H264 if profile in _BASELINE else None
