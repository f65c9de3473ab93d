"""What recording costs: one session, recorded and not recorded in turns.

Ratios are of adjacent turns, so that other load on the machine affects both alike.
"""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from reverie.bench.frame_timing import OnFrames, seconds_for, take
from reverie.bench.report import RecordingCost
from reverie.bench.sizes import BenchOptions
from reverie.host import Engine
from reverie.media import Codec
from reverie.sessions import LocalSession, SessionRequest
from reverie.sessions.protocol.events import AnyEvent
from reverie.sessions.recording.recording import Recording

WHOLE_S = 30.0


async def recording_cost(
    engine: Engine, request: SessionRequest, options: BenchOptions, frames: int, on_frames: OnFrames
) -> RecordingCost:
    """Measure turns of `frames` frames, viewed in H.264 and then as pixels."""
    shared, recordings = await _cost(engine, request, options, frames, Codec.H264, on_frames)
    alone, _ = await _cost(engine, request, options, frames, Codec.RGB24, on_frames)
    bits = 8 * sum(each.size_bytes for each in recordings)
    media_us = sum(each.duration_us for each in recordings)
    return RecordingCost(
        shared=shared.ratio,
        alone=alone.ratio,
        shared_ms=shared.more_ms,
        alone_ms=alone.more_ms,
        kbit_per_s=1000 * bits / media_us if media_us else 0.0,
    )


@dataclass(frozen=True, slots=True)
class _Cost:
    """Medians: the ratio of the frame rates, and additional processor time for a frame."""

    ratio: float
    more_ms: float


async def _cost(
    engine: Engine,
    request: SessionRequest,
    options: BenchOptions,
    frames: int,
    codec: Codec,
    on_frames: OnFrames,
) -> tuple[_Cost, list[Recording]]:
    """Return the cost, and the recordings."""
    ratios, more_ms, settle = [], [], options.settle_frames
    credentials = await engine.store.create(request)
    async with (
        LocalSession(credentials.session, codec=codec) as session,
        aclosing(session.stream()) as events,
    ):
        await take(events, settle, on_frames)
        for _ in range(options.recordings):
            plain_s, plain_cpu_s = await _turn(events, frames, on_frames)
            await session.record_start()
            await take(events, settle, on_frames)
            recorded_s, recorded_cpu_s = await _turn(events, frames, on_frames)
            await session.record_stop()
            await take(events, settle, on_frames)
            ratios.append(plain_s / recorded_s)
            more_ms.append(1000 * (recorded_cpu_s - plain_cpu_s) / frames)
    cost = _Cost(statistics.median(ratios), statistics.median(more_ms))
    return cost, await _whole(engine, credentials.session.id)


async def _turn(
    events: AsyncIterator[AnyEvent], frames: int, on_frames: OnFrames
) -> tuple[float, float]:
    """Take a number of frames; return the elapsed time and this process's processor time."""
    started_s = time.process_time()
    elapsed_s = await seconds_for(events, frames, on_frames)
    return elapsed_s, time.process_time() - started_s


async def _whole(engine: Engine, session: str) -> list[Recording]:
    recordings = engine.store.recordings
    if recordings is None:
        return []
    async with asyncio.timeout(WHOLE_S):
        return [await recordings.completed(each) for each in recordings.list(session)]
