"""ICE: STUN and TURN servers, their credentials, and candidates.

TURN credentials follow the scheme that TURN servers share (draft-uberti-behave-turn-rest-00): the
user name is the time of expiry and a name, the password an HMAC of it with the shared secret.
"""

import base64
import hashlib
import hmac
import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass

from aiortc import RTCConfiguration, RTCIceCandidate, RTCIceServer
from aiortc.rtcconfiguration import RTCBundlePolicy, RTCIceTransportPolicy
from aiortc.sdp import candidate_from_sdp

from reverie.rtc.webrtc_options import WebRtcOptions
from reverie.rtc.wire.errors import HttpRefusedError

_KINDS = ("host", "srflx", "relay")
_MAX_CANDIDATE_CHARS = 512


@dataclass(frozen=True, slots=True)
class IceServer:
    """A STUN or TURN server, as a browser's configuration names it."""

    urls: tuple[str, ...]
    username: str | None = None
    credential: str | None = None

    def as_json(self) -> dict[str, object]:
        """Return what `RTCPeerConnection` takes."""
        body: dict[str, object] = {"urls": list(self.urls)}
        if self.username is not None:
            body |= {"username": self.username, "credential": self.credential}
        return body

    def as_links(self) -> tuple[str, ...]:
        """Return the values of Link headers (RFC 9725, section 4.6)."""
        secret = ""
        if self.username is not None:
            secret = (
                f'; username="{self.username}"; credential="{self.credential}"'
                '; credential-type="password"'
            )
        return tuple(f'<{url}>; rel="ice-server"{secret}' for url in self.urls)


@dataclass(frozen=True, slots=True)
class IceEnd:
    """What one end of a path tells the other: its secrets for this path, and its candidates."""

    ufrag: str
    password: str
    candidates: tuple[RTCIceCandidate, ...] = ()


class IceServers:
    """The servers of a deployment, with credentials for each client."""

    def __init__(self, options: WebRtcOptions, now_s: Callable[[], float] = time.time) -> None:
        """Take the time of day for the expiry of credentials from `now_s`."""
        self._options = options
        self._now_s = now_s

    @property
    def relay_only(self) -> bool:
        """Whether only relayed candidates are used."""
        return self._options.relay_only

    def open_to_all(self) -> tuple[IceServer, ...]:
        """Return the servers that need no credentials."""
        urls = self._options.stun_urls
        return (IceServer(urls),) if urls else ()

    def for_user(self, user: str) -> tuple[IceServer, ...]:
        """Return all servers, with credentials that name `user` (letters, digits, -) and end."""
        options = self._options
        if not options.turn_urls or options.turn_secret is None:
            return self.open_to_all()
        username = f"{int(self._now_s()) + options.turn_ttl_s}:{user}"
        secret = options.turn_secret.get_secret_value().encode()
        digest = hmac.new(secret, username.encode(), hashlib.sha1).digest()
        turn = IceServer(options.turn_urls, username, base64.b64encode(digest).decode())
        return (*self.open_to_all(), turn)

    def configuration(self) -> RTCConfiguration:
        """Return this server's own configuration.

        All sections share one path from the start: with its other policies aiortc leaves the second
        section of a kind on a path that it has closed.
        """
        servers = [
            RTCIceServer(list(each.urls), each.username, each.credential)
            for each in self.for_user("server")
        ]
        policy = RTCIceTransportPolicy.RELAY if self.relay_only else RTCIceTransportPolicy.ALL
        return RTCConfiguration(servers, policy, RTCBundlePolicy.MAX_BUNDLE)


def parse_candidate(text: str) -> RTCIceCandidate | None:
    """Return a candidate; None for one that cannot be used: no UDP, or a `.local` name.

    Args:
        text: as in `RTCIceCandidate.candidate`, with or without `candidate:` before it.

    Raises:
        HttpRefusedError: the text is no candidate.
    """
    line = text.strip().removeprefix("a=").removeprefix("candidate:")
    try:
        if len(line) > _MAX_CANDIDATE_CHARS:
            raise ValueError(line[:16])
        candidate = candidate_from_sdp(line)
        usable = 0 < candidate.port < 2**16 and 0 <= candidate.priority < 2**32
    except (ValueError, IndexError, AssertionError):
        raise HttpRefusedError(
            400, "bad_candidate", "this is no ICE candidate", field="candidates"
        ) from None
    return candidate if usable and is_usable(candidate) else None


def is_usable(candidate: RTCIceCandidate) -> bool:
    """Tell whether a candidate is an address that can be reached by UDP."""
    return (
        candidate.component == 1
        and candidate.type in _KINDS
        and candidate.protocol.lower() == "udp"
        and _is_address(candidate.ip)
    )


def without_names(sdp: str) -> str:
    """Return the SDP without candidates that are names instead of addresses.

    Looking a name up would delay the answer by a second; the peer is found by its own checks.
    """
    return "".join(line for line in sdp.splitlines(keepends=True) if not _is_name(line))


def _is_name(line: str) -> bool:
    parts = line.split()
    is_candidate = line.startswith("a=candidate:") and len(parts) > 4
    return is_candidate and not _is_address(parts[4])


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
