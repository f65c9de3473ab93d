"""Pictures over a WebSocket on a line that takes less than they need."""

import asyncio
import json
import socket
from collections.abc import Iterator
from time import monotonic

import av
import numpy as np
import pytest
from net_namespace import line_or_skip
from rtc_serving import address
from websockets.asyncio.client import connect

from reverie.bench.latency import at, serving
from reverie.bench.line import EmulatedLine
from reverie.bench.time_code import WRAP, now_units, read
from reverie.rtc.wire.framing import decode_event
from reverie.sessions import SessionRequest
from reverie.sessions.protocol.media_events import MediaChunk

MODEL = "reverie.bench.over_line.toy_models:busy24"
OLDER_MS = 300
SLACK_MS = 300
"""For a machine that does other things as well."""

SETTLE_S = 4.0
SECONDS = 5.0


@pytest.fixture
def line() -> Iterator[EmulatedLine]:
    with line_or_skip() as laid:
        yield laid


class Viewer:
    """Decodes what comes, and reports it as seen at once."""

    def __init__(self) -> None:
        self.ages_ms: list[float] = []
        self._decoder = av.CodecContext.create("h264", "r")
        self._begun_s = monotonic()

    async def watch(self, url: str, far: socket.socket, session: str, token: str) -> None:
        """Watch for a while, over a socket that is connected already."""
        async with connect(url, sock=far, compression=None, proxy=None, max_size=None) as wire:
            hello = {"type": "hello", "protocol": 1, "token": token, "codecs": ["h264"]}
            await wire.send(json.dumps(hello))
            while monotonic() - self._begun_s < SETTLE_S + SECONDS:
                event = decode_event(await wire.recv())
                if not isinstance(event, MediaChunk):
                    continue
                self._show(event.data)
                told = {"type": "playhead", "id": "p", "chunk": event.chunk, "pts_us": event.pts_us}
                await wire.send(json.dumps(told))

    def _show(self, data: bytes) -> None:
        for frame in self._decoder.decode(av.Packet(data)):
            units = read(np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8))
            if units is not None and monotonic() - self._begun_s > SETTLE_S:
                self.ages_ms.append((now_units() - units) % WRAP / 10)


async def test_on_a_narrow_line_pictures_are_hardly_older_and_keep_their_rate(
    line: EmulatedLine,
) -> None:
    found: dict[float, list[float]] = {}
    with line.near.entered():
        async with serving(MODEL, "inline", host="0.0.0.0") as (engine, server):
            host, port = address(server.url)
            for rate_kbit in (0.0, 500.0):
                line.downlink.change(rate_kbit=rate_kbit)
                credentials = await engine.store.create(SessionRequest("bench", seed=0))
                session = credentials.session.id
                with line.far.entered():
                    far = socket.create_connection((line.near_address, port))
                viewer = Viewer()
                url = f"ws://{host}:{port}/v1/sessions/{session}/ws"
                async with asyncio.timeout(40):
                    await viewer.watch(url, far, session, credentials.token)
                found[rate_kbit] = viewer.ages_ms
                engine.store.close(session)
                await credentials.session.gone()
    free, narrow = found[0.0], found[500.0]
    assert at(0.5, narrow) < at(0.5, free) + OLDER_MS + SLACK_MS
    assert len(narrow) > 0.5 * len(free)
