"""The bodies of PATCH requests by WHIP and WHEP: `application/trickle-ice-sdpfrag` (RFC 8840)."""

from collections.abc import Sequence

from aiortc.sdp import candidate_to_sdp

from reverie.rtc.webrtc.ice import IceEnd, parse_candidate
from reverie.rtc.wire.errors import HttpRefusedError

KIND = "application/trickle-ice-sdpfrag"
MAX_LINES = 1000
_MAX_SECRET_CHARS = 256


def read_fragment(text: str) -> IceEnd:
    """Return the peer's end of the path in a fragment; missing secrets are empty.

    Candidates that cannot be used are left out.

    Raises:
        HttpRefusedError: `bad_fragment`, or `bad_candidate`.
    """
    lines = [line.strip() for line in text.splitlines()]
    if len(lines) > MAX_LINES or any(line and line[1:2] != "=" for line in lines):
        raise HttpRefusedError(400, "bad_fragment", "this is no SDP fragment", field="$")
    ufrag, password = _value(lines, "ice-ufrag"), _value(lines, "ice-pwd")
    if bool(ufrag) != bool(password):
        text = "give both ice-ufrag and ice-pwd, or none"
        raise HttpRefusedError(400, "bad_fragment", text, field="$")
    parsed = [parse_candidate(line) for line in lines if line.startswith("a=candidate:")]
    return IceEnd(ufrag, password, tuple(each for each in parsed if each is not None))


def write_fragment(end: IceEnd, mids: Sequence[str]) -> str:
    """Return the fragment of this server's end, for sections that are bundled on the first."""
    lines = [
        "a=ice-options:trickle ice2",
        f"a=group:BUNDLE {' '.join(mids)}",
        f"a=ice-ufrag:{end.ufrag}",
        f"a=ice-pwd:{end.password}",
        "m=video 9 UDP/TLS/RTP/SAVPF 0",
        f"a=mid:{mids[0]}",
        *(f"a=candidate:{candidate_to_sdp(each)}" for each in end.candidates),
        "a=end-of-candidates",
    ]
    return "".join(f"{line}\r\n" for line in lines)


def _value(lines: Sequence[str], attribute: str) -> str:
    start = f"a={attribute}:"
    found = {line.removeprefix(start) for line in lines if line.startswith(start)}
    if len(found) > 1 or any(not 0 < len(each) <= _MAX_SECRET_CHARS for each in found):
        text = f"{attribute}: one of 1 to {_MAX_SECRET_CHARS} characters"
        raise HttpRefusedError(400, "bad_fragment", text, field="$")
    return found.pop() if found else ""
