"""What a TCP socket has not delivered yet: the kernel says it on Linux, this process elsewhere."""

import array
import socket
import struct
import sys
from asyncio import Transport
from dataclasses import dataclass

if sys.platform == "linux":
    import fcntl

_SIOCOUTQ = 0x5411
"""Bytes that were written and are not acknowledged (Linux)."""

_SIOCOUTQNSD = 0x894B
"""Bytes that were written and are not on the line (Linux)."""

_TCP_INFO = struct.Struct("=7xB60xI48xQ20xI8xQ")
"""Of `struct tcp_info`: flags, srtt, bytes acknowledged, least round trip, delivery rate."""

_APP_LIMITED = 1
"""Flag: the delivery rate is what was written, and the line may take more."""


@dataclass(frozen=True, slots=True)
class SocketReading:
    """What waits for one client.

    Attributes:
        unsent_bytes: in this process and in the kernel, not on the line yet.
        in_flight_bytes: on the line and not acknowledged; 0 where it is not known.
        acked_bytes: acknowledged so far; None: not known.
        bytes_per_s: how fast the line delivered when it was last busy; None: not known.
        rate_is_least: the line may take more than that.
        round_trip_us: at present, smoothed; 0: not known.
        least_round_trip_us: with empty queues on the way; 0: not known.
    """

    unsent_bytes: int
    in_flight_bytes: int = 0
    acked_bytes: int | None = None
    bytes_per_s: int | None = None
    rate_is_least: bool = False
    round_trip_us: int = 0
    least_round_trip_us: int = 0

    @property
    def outstanding_bytes(self) -> int:
        """Bytes that were written and are not known to have arrived."""
        return self.unsent_bytes + self.in_flight_bytes


def read_socket(transport: Transport) -> SocketReading:
    """Return what waits in a transport and in the kernel under it."""
    waiting = transport.get_write_buffer_size()
    sock = transport.get_extra_info("socket")
    if sock is None or sys.platform != "linux":
        return SocketReading(waiting)
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        outstanding, unsent = _asked(sock, _SIOCOUTQ), _asked(sock, _SIOCOUTQNSD)
        flags, trip_us, acked, least_us, rate = _TCP_INFO.unpack_from(info)
    except (OSError, struct.error):
        return SocketReading(waiting)  # not TCP, or closed, or an older kernel
    return SocketReading(
        unsent_bytes=waiting + unsent,
        in_flight_bytes=outstanding - unsent,
        acked_bytes=acked,
        bytes_per_s=rate or None,
        rate_is_least=bool(flags & _APP_LIMITED),
        round_trip_us=trip_us,
        least_round_trip_us=least_us,
    )


def _asked(sock: socket.socket, request: int) -> int:
    answer = array.array("i", [0])
    fcntl.ioctl(sock.fileno(), request, answer)
    return answer[0]
