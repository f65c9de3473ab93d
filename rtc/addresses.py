"""Where a request comes from, to be counted: the client's address, also behind proxies.

Anybody can write `X-Forwarded-For`. It counts only where the connection comes from a proxy that the
deployment names, and only as far as such proxies have written it: from its end to the first address
that is none of theirs.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.requests import HTTPConnection

SUBSCRIBER_BITS = 64
"""Of IPv6, the network of one subscriber, in which they have as many addresses as they like."""

Address = IPv4Address | IPv6Address


class Addresses:
    """Finds and names the addresses of clients."""

    def __init__(self, trusted_proxies: Iterable[str] = ()) -> None:
        """Trust the proxies of these networks to say for whom they ask."""
        self._proxies = [ip_network(each, strict=False) for each in trusted_proxies]

    def of(self, connection: HTTPConnection) -> str:
        """Return what a request, or a WebSocket, is counted under."""
        host = connection.client.host if connection.client else ""
        address = parsed(host)
        if address is None:
            return host
        hops = ",".join(connection.headers.getlist("x-forwarded-for")).split(",")
        while self._is_proxy(address) and hops:
            before = parsed(_without_port(hops.pop().strip()))
            if before is None:
                break  # nobody knows who that is: what asks is the proxy
            address = before
        return counted(address)

    def is_proxied(self, connection: HTTPConnection) -> bool:
        """Tell whether a request comes from one of the named proxies."""
        address = parsed(connection.client.host) if connection.client else None
        return address is not None and self._is_proxy(address)

    def of_peer(self, host: str) -> str | None:
        """Return what a connection is counted under; None for a proxy, which stands for many."""
        address = parsed(host)
        if address is None:
            return host
        return None if self._is_proxy(address) else counted(address)

    def _is_proxy(self, address: Address) -> bool:
        return any(address in network for network in self._proxies)


def parsed(text: str) -> Address | None:
    """Return an address, of IPv4 also where it is written as one of IPv6; None when it is none."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def counted(address: Address) -> str:
    """Return what an address is counted under: of IPv6, the network of one subscriber."""
    if isinstance(address, IPv6Address):
        network = IPv6Network((int(address), SUBSCRIBER_BITS), strict=False)
        return str(network.network_address)
    return str(address)


def _without_port(text: str) -> str:
    """Return the address of `1.2.3.4:5` or `[2001:db8::1]:5`; some proxies write the port too."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
