"""The least code that shows pictures in a browser: loops around aiortc and around a WebSocket.

They have no sessions, events or limits. The server is compared with them.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from fractions import Fraction

from aiortc import (
    MediaStreamTrack,
    RTCConfiguration,
    RTCPeerConnection,
    RTCSessionDescription,
)
from av import VideoFrame
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from reverie.bench.time_code import SIDE_PX, now_units, paint, sleep_to_tick
from reverie.media import Size
from reverie.media.video.h264 import H264Encoder

RATE_HZ = 30.0


class _Clock(MediaStreamTrack):
    """A video track that draws the time, at `RATE_HZ`."""

    kind = "video"

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count()

    async def recv(self) -> VideoFrame:
        """Wait for the next moment and draw it."""
        number = await asyncio.to_thread(sleep_to_tick, RATE_HZ)
        frame = VideoFrame.from_ndarray(paint(now_units(), number), format="rgb24")
        frame.pts, frame.time_base = (
            round(next(self._numbers) * 90_000 / RATE_HZ),
            Fraction(1, 90_000),
        )
        return frame


class BareRtc:
    """Peers of aiortc with its own encoder, VP8."""

    def __init__(self) -> None:
        self._peers: list[RTCPeerConnection] = []

    async def answer(self, sdp: str) -> str:
        """Answer an offer."""
        peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._peers.append(peer)
        await peer.setRemoteDescription(RTCSessionDescription(sdp, "offer"))
        for transceiver in peer.getTransceivers():
            transceiver.sender.replaceTrack(_Clock())
            transceiver.direction = "sendonly"
        await peer.setLocalDescription(await peer.createAnswer())
        return peer.localDescription.sdp

    async def close(self) -> None:
        """End all peers."""
        for peer in self._peers:
            await peer.close()
        self._peers.clear()


@asynccontextmanager
async def bare_socket() -> AsyncIterator[str]:
    """Serve H.264 access units, one a message after a byte that marks key frames; yield the URL."""
    async with serve(_send_pictures, "127.0.0.1", 0, compression=None) as server:
        host, port = next(iter(server.sockets)).getsockname()[:2]
        yield f"ws://{host}:{port}"


async def _send_pictures(socket: ServerConnection) -> None:
    with suppress(ConnectionClosed):
        await _send_until_closed(socket)


async def _send_until_closed(socket: ServerConnection) -> None:
    encoder = H264Encoder(Size(SIDE_PX, SIDE_PX), RATE_HZ)
    for index in itertools.count():
        number = await asyncio.to_thread(sleep_to_tick, RATE_HZ)
        picture = paint(now_units(), number)
        pts_us = round(index * 1e6 / RATE_HZ)
        unit = await asyncio.to_thread(encoder.encode, picture, pts_us, False)
        await socket.send(bytes([unit.key]) + unit.data)
