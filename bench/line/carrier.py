"""The thread that carries the frames of a line, from one raw socket to the other."""

import ctypes
import fcntl
import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Self

from reverie.bench.line.path import Path

IDLE_S = 0.02
"""How soon a closed line, and one whose settings were changed, is seen at the latest."""

MOST_FRAME = 65_536
_ALL_PROTOCOLS = 3
_BUFFER = 1 << 22
_SIOCETHTOOL = 0x8946
_OFFLOADS = (0x17, 0x1F, 0x24, 0x2C)  # ETHTOOL_STXCSUM, STSO, SGSO, SGRO


class Carrier:
    """Two raw sockets, and what comes in at one goes out at the other."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self._near, self._far = near, far
        self._stopped = False

    @classmethod
    def between(cls, near: str, far: str) -> Self:
        """Open the sockets on two devices of this thread's network namespace.

        Raises:
            OSError: they cannot be opened.
        """
        opened = []
        try:
            for device in (near, far):
                raw = socket.socket(
                    socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(3)
                )
                opened.append(raw)
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
                raw.bind((device, _ALL_PROTOCOLS))
        except OSError:
            for raw in opened:
                raw.close()
            raise
        return cls(*opened)

    @contextmanager
    def carrying(self, downlink: Path, uplink: Path) -> Iterator[None]:
        """Carry until the end of the block, by a thread; then close the sockets."""
        ways = ((self._near, self._far, downlink), (self._far, self._near, uplink))
        thread = Thread(target=self._carry, args=(ways,), name="line", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped = True
            thread.join()
            self._near.close()
            self._far.close()

    def _carry(self, ways: tuple[tuple[socket.socket, socket.socket, Path], ...]) -> None:
        while not self._stopped:
            now_s = time.monotonic()
            for _, outward, path in ways:
                for frame in path.due(now_s):
                    with suppress(OSError):  # the device is down or full: lost, as on any line
                        outward.send(frame)
            rest_s = min(path.next_s for _, _, path in ways) - time.monotonic()
            # `select` waits to the microsecond, where poll and epoll wait to the millisecond.
            ready, _, _ = select.select(
                (self._near, self._far), (), (), max(0.0, min(rest_s, IDLE_S))
            )
            for inward, _, path in ways:
                if inward in ready:
                    _take(inward, path)


def _take(inward: socket.socket, path: Path) -> None:
    """Send all frames on their way that have come in."""
    while True:
        try:
            frame = inward.recv(MOST_FRAME)
        except BlockingIOError:
            return
        path.enter(frame, time.monotonic())


def send_whole_frames(device: str) -> None:
    """Have a device of this thread's namespace send frames as they are on a wire.

    Otherwise they are read with no checksum, and larger than the line carries, because the kernel
    leaves the rest of the work to a device that has none to do.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for offload in _OFFLOADS:
            value = ctypes.create_string_buffer(struct.pack("II", offload, 0))
            request = struct.pack("16sP", device.encode(), ctypes.addressof(value)) + bytes(16)
            with suppress(OSError):  # not every kernel knows all of them
                fcntl.ioctl(any_socket, _SIOCETHTOOL, request)
