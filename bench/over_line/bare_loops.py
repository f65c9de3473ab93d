"""Bare loops around the toy models: a model, an encoder and a socket or a peer, and nothing else.

They have no sessions, events or limits. The server is compared with them. They run as a process:

    python -m reverie.bench.over_line.bare_loops HOST PORT

A socket to `/NAME/websocket` gets H.264 access units of that toy, each after a byte that marks key
frames. A socket to `/NAME/webrtc` takes the SDP of an offer and gets that of the answer; the peer
gets VP8. A message `1` or `0`, on the socket or the peer's data channel, presses or releases the
key.
"""

import asyncio
import itertools
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction

import numpy as np
from aiortc import (
    MediaStreamTrack,
    RTCConfiguration,
    RTCDataChannel,
    RTCPeerConnection,
    RTCSessionDescription,
)
from av import VideoFrame
from numpy.typing import NDArray
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from reverie.bench.over_line.toy_models import TOYS, Toy
from reverie.bench.time_code import SIDE_PX
from reverie.media import Size
from reverie.media.video.h264 import H264Encoder

READY = "ready"


class _SteppingLoop:
    """A toy that steps at its rate, with the key that is held."""

    def __init__(self, toy: Toy) -> None:
        self.toy = toy
        self.pressed = False
        self._numbers = itertools.count()
        self._due_s = time.monotonic()

    def hear(self, message: str | bytes) -> None:
        """Press or release the key."""
        self.pressed = message in ("1", b"1")

    async def picture(self) -> NDArray[np.uint8]:
        """Wait for the end of the next step, which begins no sooner than its rate allows."""
        await asyncio.sleep(self._due_s - time.monotonic())
        self._due_s = max(self._due_s + 1 / self.toy.rate_hz, time.monotonic())
        number, pressed = next(self._numbers), self.pressed
        return await asyncio.to_thread(self.toy.step, number, marked=pressed)


class _Track(MediaStreamTrack):
    """The pictures of a loop, with the time at which each was made."""

    kind = "video"

    def __init__(self, loop: _SteppingLoop) -> None:
        super().__init__()
        self._steps = loop
        self._begun_s = time.monotonic()

    async def recv(self) -> VideoFrame:
        """Wait for the next picture."""
        frame = VideoFrame.from_ndarray(await self._steps.picture(), format="rgb24")
        frame.pts = round((time.monotonic() - self._begun_s) * 90_000)
        frame.time_base = Fraction(1, 90_000)
        return frame


async def _serve(socket: ServerConnection) -> None:
    _, name, way = (socket.request.path if socket.request else "//").split("/")
    send = _send_by_rtc if way == "webrtc" else _send_by_socket
    with suppress(ConnectionClosed):
        await send(socket, _SteppingLoop(TOYS[name]))


async def _send_by_socket(socket: ServerConnection, loop: _SteppingLoop) -> None:
    async with asyncio.TaskGroup() as tasks:
        hearing = tasks.create_task(_hear(socket, loop.hear), name="hear")
        encoder = H264Encoder(Size(SIDE_PX, SIDE_PX), loop.toy.rate_hz)
        begun_s = time.monotonic()
        while not hearing.done():
            picture = await loop.picture()
            pts_us = round((time.monotonic() - begun_s) * 1e6)
            unit = await asyncio.to_thread(encoder.encode, picture, pts_us, False)
            with suppress(ConnectionClosed):
                await socket.send(bytes([unit.key]) + unit.data)


async def _send_by_rtc(socket: ServerConnection, loop: _SteppingLoop) -> None:
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))

    @peer.on("datachannel")
    def opened(channel: RTCDataChannel) -> None:
        channel.on("message", loop.hear)

    try:
        await peer.setRemoteDescription(RTCSessionDescription(str(await socket.recv()), "offer"))
        for transceiver in peer.getTransceivers():
            transceiver.sender.replaceTrack(_Track(loop))
            transceiver.direction = "sendonly"
        await peer.setLocalDescription(await peer.createAnswer())
        await socket.send(peer.localDescription.sdp)
        await _hear(socket, lambda _: None)
    finally:
        await peer.close()


async def _hear(socket: ServerConnection, hear: Callable[[str | bytes], None]) -> None:
    """Pass messages on until the socket is closed."""
    with suppress(ConnectionClosed):
        while True:
            hear(await socket.recv())


async def _run(host: str, port: int) -> None:
    async with serve(_serve, host, port, compression=None) as server:
        sys.stdout.write(f"{READY}\n")
        sys.stdout.flush()
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_run(sys.argv[1], int(sys.argv[2])))
