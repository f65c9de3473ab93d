"""The address of the client that a request counts for, also behind proxies.

Any client can write `X-Forwarded-For`. The header counts only when the connection comes from a
proxy that the deployment names, and only as far as such proxies wrote it: from its end to the first
address that is not theirs.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.requests import HTTPConnection

SUBSCRIBER_BITS = 64
"""The IPv6 network of one subscriber, who may use any address in it."""

Address = IPv4Address | IPv6Address


class Addresses:
    """Finds and names the addresses of clients."""

    def __init__(self, trusted_proxies: Iterable[str] = ()) -> None:
        """Trust proxies in these networks to name their clients."""
        self._proxies = [ip_network(each, strict=False) for each in trusted_proxies]

    def of(self, connection: HTTPConnection) -> str:
        """Return the address that a request or WebSocket counts for."""
        host = connection.client.host if connection.client else ""
        address = parsed(host)
        if address is None:
            return host
        hops = ",".join(connection.headers.getlist("x-forwarded-for")).split(",")
        while self._is_proxy(address) and hops:
            before = parsed(_without_port(hops.pop().strip()))
            if before is None:
                break  # no address: the request counts for the proxy
            address = before
        return counted(address)

    def is_proxied(self, connection: HTTPConnection) -> bool:
        """Tell whether a request comes from one of the named proxies."""
        address = parsed(connection.client.host) if connection.client else None
        return address is not None and self._is_proxy(address)

    def of_peer(self, host: str) -> str | None:
        """Return the address that a connection counts for; None for a proxy."""
        address = parsed(host)
        if address is None:
            return host
        return None if self._is_proxy(address) else counted(address)

    def _is_proxy(self, address: Address) -> bool:
        return any(address in network for network in self._proxies)


def parsed(text: str) -> Address | None:
    """Return an address, an IPv4 one also where it is mapped into IPv6; None when it is none."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def counted(address: Address) -> str:
    """Return the text that an address counts for: of IPv6, the network of one subscriber."""
    if isinstance(address, IPv6Address):
        network = IPv6Network((int(address), SUBSCRIBER_BITS), strict=False)
        return str(network.network_address)
    return str(address)


def _without_port(text: str) -> str:
    """Return the address of `1.2.3.4:5` or `[2001:db8::1]:5`; some proxies write the port too."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
