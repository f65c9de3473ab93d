"""Which candidates of a peer are checked, and how often.

A candidate is an address in an offer, and the server sends checks to every one: a client could aim
them at a third party. So addresses that cannot be a peer's are left out, one host has few
candidates, and a host from which no peer has connected yet gets few checks, however many offers
name it. A peer whose candidates are left out is still found by the checks that it sends itself.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from aiortc import RTCIceCandidate
from aiortc.sdp import candidate_from_sdp

from reverie.rtc.addresses import Address, parsed
from reverie.rtc.rate_limit import TokenBucket

MOST_CANDIDATES = 32
"""Candidates of one path."""

MOST_OF_HOST = 8
"""Candidates of one path at one address: several interfaces, and several NAT mappings."""

LOWEST_PORT = 1024
"""Below are the well-known services, not peers."""

CHECKS_AT_ONCE = 40
CHECKS_PER_S = 4.0
"""Checks to one host, of all peers together, until a peer has connected from there."""

MOST_HOSTS = 10_000
"""Hosts that are remembered; the one that was unused for longest is forgotten first."""

_PRIVATE = tuple(
    ip_network(each)
    for each in (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "fc00::/7",
        "fe80::/10",
    )
)
_RESERVED = tuple(ip_network(each) for each in ("0.0.0.0/8", "240.0.0.0/4", "::ffff:0:0/96"))


class CheckBudget:
    """The checks that each host may still be sent, by all peers of a server.

    Args:
        now_s: seconds of any clock that does not go back.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._buckets: OrderedDict[str, TokenBucket | None] = OrderedDict()  # None: a peer is there

    def may_check(self, host: str) -> bool:
        """Count a check to a host; tell whether it may be sent."""
        if host not in self._buckets:
            self._buckets[host] = TokenBucket(CHECKS_PER_S, CHECKS_AT_ONCE, self._now_s())
        self._move_last(host)
        bucket = self._buckets[host]
        return bucket is None or not bucket.wait_s(self._now_s())

    def confirm(self, host: str) -> None:
        """Note that a peer has connected from a host, so checks to it are wanted."""
        self._buckets[host] = None
        self._move_last(host)

    def _move_last(self, host: str) -> None:
        self._buckets.move_to_end(host)
        if len(self._buckets) > MOST_HOSTS:
            self._buckets.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Reach:
    """The addresses that peers of one client may have.

    Attributes:
        asker: the address of the client that sent the offer.
        own: addresses of this server.
        budget: of the checks to these addresses.
    """

    asker: str
    own: Sequence[str]
    budget: CheckBudget

    def allows(self, host: str, port: int) -> bool:
        """Tell whether a peer may have an address.

        An address in a private network or of this machine is allowed only when the server has an
        address there as well, and the client is not outside.
        """
        try:
            address = ip_address(host)
        except ValueError:
            return False
        reserved = address.is_multicast or address.is_unspecified or _within(address, _RESERVED)
        if port < LOWEST_PORT or reserved:
            return False
        asker = parsed(self.asker)
        if address.is_loopback:
            return asker is not None and asker.is_loopback
        blocks = [block for block in _PRIVATE if address in block]
        if not blocks:
            return True
        is_inside = asker is not None and (asker.is_loopback or _within(asker, _PRIVATE))
        return is_inside and any(_within(ip_address(own), blocks) for own in self.own)


class CandidateFilter:
    """Chooses the candidates of one path that are checked."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._taken: set[tuple[str, int]] = set()

    def takes(self, candidate: RTCIceCandidate) -> bool:
        """Tell whether a candidate is checked; a repeated one counts once."""
        place = (candidate.ip, candidate.port)
        if place in self._taken:
            return True
        at_host = sum(host == candidate.ip for host, _ in self._taken)
        if len(self._taken) >= MOST_CANDIDATES or at_host >= MOST_OF_HOST:
            return False
        if not self._reach.allows(candidate.ip, candidate.port):
            return False
        self._taken.add(place)
        return True

    def applied(self, sdp: str) -> str:
        """Return an offer without the candidates that are not checked.

        After one was left out, the list is not final: the peer may be found by its own checks.
        """
        lines = sdp.splitlines(keepends=True)
        kept = [line for line in lines if not _is_candidate(line) or self._takes_line(line)]
        if len(kept) < len(lines):
            kept = [line for line in kept if line.strip() != "a=end-of-candidates"]
        return "".join(kept)

    def _takes_line(self, line: str) -> bool:
        return self.takes(candidate_from_sdp(line.strip().removeprefix("a=candidate:")))


def _is_candidate(line: str) -> bool:
    return line.startswith("a=candidate:")


def _within(address: Address, blocks: Iterable[IPv4Network | IPv6Network]) -> bool:
    return any(address in block for block in blocks)
