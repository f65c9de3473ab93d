"""Many WebRTC viewers of one session: frames a second, and the age of the frames.

The receivers are aiortc peers in their own process, by WHEP. That process runs this module:

    python -m reverie.bench.viewers URL SESSION TOKEN COUNT SETTLE_S SECONDS

aiortc holds each frame until the next one begins, one frame interval (67 ms) more than Chromium;
the ages here include it.
"""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from math import inf

import httpx
import numpy as np
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
from av import VideoFrame

from reverie.bench.latency import Mode, at, serving
from reverie.bench.time_code import WRAP, now_units, read
from reverie.sessions import SessionRequest

MODEL = "reverie.bench.time_code:ticking15"
RATE_HZ = 15.0
SETTLE_S = 4.0
START_S = 60.0


@dataclass(frozen=True, slots=True)
class Viewers:
    """The measurements of a number of receivers of one session.

    Attributes:
        fps: decoded frames a second of each receiver.
        p95_ms: age of a frame when it was decoded, over all receivers.
    """

    count: int
    fps: float
    p50_ms: float
    p95_ms: float


async def viewers_of_one(
    counts: tuple[int, ...],
    seconds: float,
    settle_s: float = SETTLE_S,
    mode: Mode = "process",
    most_ms: float = inf,
) -> AsyncGenerator[Viewers, None]:
    """Measure each count in its own session, and yield it.

    Args:
        counts: numbers of receivers, in this order.
        seconds: length of each measurement.
        settle_s: time before it that does not count.
        mode: where the model runs.
        most_ms: the measurement ends when the 95th percentile of the age exceeds this.
    """
    async with serving(MODEL, mode, max(counts)) as (engine, server):
        for count in counts:
            credentials = await engine.store.create(SessionRequest("bench", seed=0))
            session = (credentials.session.id, credentials.watch_token)
            found = await _measured(server.url, session, count, (settle_s, seconds))
            engine.store.close(credentials.session.id)
            await credentials.session.gone()
            yield found
            if not 0 <= found.p95_ms <= most_ms:
                return


async def _measured(
    url: str, session: tuple[str, str], count: int, times: tuple[float, float]
) -> Viewers:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "reverie.bench.viewers", url, *session, str(count), *map(str, times),
        stdout=PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(START_S + sum(times)):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    told = json.loads(out)
    return Viewers(count, told["fps"], told["p50_ms"], told["p95_ms"])


class _Receiver:
    """One viewer, which records the ages of its decoded frames."""

    def __init__(self) -> None:
        self.ages_ms: list[float] = []
        self._peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._peer.addTransceiver("video", direction="recvonly")
        self._peer.on("track", self._begin)
        self._watching: asyncio.Task[None] | None = None

    async def connect(self, http: httpx.AsyncClient, session: str, token: str) -> None:
        """Send an offer by WHEP and apply the answer."""
        await self._peer.setLocalDescription(await self._peer.createOffer())
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/sdp"}
        answer = await http.post(
            f"/v1/sessions/{session}/whep",
            content=self._peer.localDescription.sdp,
            headers=headers,
        )
        answer.raise_for_status()
        await self._peer.setRemoteDescription(RTCSessionDescription(answer.text, "answer"))

    async def close(self) -> None:
        """Close the peer connection."""
        await self._peer.close()
        if self._watching is not None:
            await self._watching

    def _begin(self, track: MediaStreamTrack) -> None:
        self._watching = asyncio.create_task(self._watch(track), name="watch")

    async def _watch(self, track: MediaStreamTrack) -> None:
        while True:
            try:
                frame = await track.recv()
            except MediaStreamError:
                return
            if isinstance(frame, VideoFrame):
                units = read(np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8))
                if units is not None:
                    self.ages_ms.append((now_units() - units) % WRAP / 10)


async def _receive(
    url: str, session: str, token: str, count: int, settle_s: float, seconds: float
) -> None:
    receivers = [_Receiver() for _ in range(count)]
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=START_S) as http:
        for receiver in receivers:
            await receiver.connect(http, session, token)
    await asyncio.sleep(settle_s)
    for receiver in receivers:
        receiver.ages_ms.clear()
    await asyncio.sleep(seconds)
    ages = [age for receiver in receivers for age in receiver.ages_ms]
    told = {
        "fps": len(ages) / count / seconds,
        "p50_ms": at(0.5, ages) if ages else -1.0,
        "p95_ms": at(0.95, ages) if ages else -1.0,
    }
    sys.stdout.write(json.dumps(told))
    for receiver in receivers:
        await receiver.close()


if __name__ == "__main__":
    _, _url, _session, _token, _count, _settle, _seconds = sys.argv
    asyncio.run(_receive(_url, _session, _token, int(_count), float(_settle), float(_seconds)))
