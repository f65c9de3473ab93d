"""What recording costs: one session, recorded and not recorded in turns.

A ratio of neighbours in time: a machine that is busy with something else is as busy for both.
"""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from reverie.bench.report import RecordingCost
from reverie.bench.sizes import BenchOptions
from reverie.bench.taking import Told, seconds_for, take
from reverie.host import Engine
from reverie.media import Codec
from reverie.sessions import LocalSession, SessionRequest
from reverie.sessions.protocol.events import AnyEvent
from reverie.sessions.recording.recording import Recording

WHOLE_S = 30.0


async def recording_cost(
    engine: Engine, request: SessionRequest, options: BenchOptions, frames: int, told: Told
) -> RecordingCost:
    """Measure turns of `frames` frames, watched in H.264 and then as pixels."""
    shared, recordings = await _cost(engine, request, options, frames, Codec.H264, told)
    alone, _ = await _cost(engine, request, options, frames, Codec.RGB24, told)
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
    """Medians: the frame rate recorded over not recorded, and processor time a frame more."""

    ratio: float
    more_ms: float


async def _cost(
    engine: Engine,
    request: SessionRequest,
    options: BenchOptions,
    frames: int,
    codec: Codec,
    told: Told,
) -> tuple[_Cost, list[Recording]]:
    """Return what it costs, and what was recorded."""
    ratios, more_ms, settle = [], [], options.settle_frames
    credentials = await engine.store.create(request)
    async with (
        LocalSession(credentials.session, codec=codec) as session,
        aclosing(session.stream()) as events,
    ):
        await take(events, settle, told)
        for _ in range(options.recordings):
            plain_s, plain_cpu_s = await _turn(events, frames, told)
            await session.record_start()
            await take(events, settle, told)
            recorded_s, recorded_cpu_s = await _turn(events, frames, told)
            await session.record_stop()
            await take(events, settle, told)
            ratios.append(plain_s / recorded_s)
            more_ms.append(1000 * (recorded_cpu_s - plain_cpu_s) / frames)
    cost = _Cost(statistics.median(ratios), statistics.median(more_ms))
    return cost, await _whole(engine, credentials.session.id)


async def _turn(events: AsyncIterator[AnyEvent], frames: int, told: Told) -> tuple[float, float]:
    """Take so many frames; return how long that took, and this process's time for it."""
    started_s = time.process_time()
    elapsed_s = await seconds_for(events, frames, told)
    return elapsed_s, time.process_time() - started_s


async def _whole(engine: Engine, session: str) -> list[Recording]:
    recordings = engine.store.recordings
    if recordings is None:
        return []
    async with asyncio.timeout(WHOLE_S):
        return [await recordings.completed(each) for each in recordings.list(session)]
