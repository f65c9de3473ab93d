"""What words cost the pictures: two sessions in turns, of which one has somebody who tells.

While one is measured the other is paused, so that nobody speaks on the side. How long the loops of
a session wait for each other is counted in units, from the worker's own traces.
"""

import asyncio
import statistics
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace

from reverie.bench.report import NarrationCost
from reverie.bench.sizes import BenchOptions
from reverie.bench.taking import Told, seconds_for, take
from reverie.engine.emissions import FramesHeader, FramesOut, StepTrace, TextOut
from reverie.gpu_pool import Notification, StartRequest, WorkerHandle
from reverie.gpu_pool.wire.messages import PlayheadMoved
from reverie.host import Engine
from reverie.models.contract.spec import ModelSpec, ProgramSpec, StreamKind
from reverie.sessions import SessionRequest
from reverie.sessions.client.session import Session
from reverie.sessions.protocol.events import AnyEvent, TextDelta

LIMIT_S = 300.0


def program_with_words(spec: ModelSpec) -> ProgramSpec | None:
    """Return the first program that adds words to what the model's first one shows."""
    shows = spec.programs[0].loops
    for program in spec.programs[1:]:
        more = [spec.loop(name) for name in program.loops[len(shows) :]]
        kinds = {stream.kind for loop in more for stream in loop.streams}
        if program.loops[: len(shows)] == shows and kinds == {StreamKind.TEXT}:
            return program
    return None


async def narration_cost(
    engine: Engine, request: SessionRequest, options: BenchOptions, frames: int, told: Told
) -> NarrationCost | None:
    """Measure turns of at least `frames` frames; None for a model without words."""
    program = program_with_words(engine.specs[request.model])
    if program is None:
        return None
    speaks = replace(request, program=program.name)
    frames = max(frames, options.speaking_frames)
    words, seconds, ratios = 0, 0.0, []
    async with AsyncExitStack() as exits:
        plain = await _Walk.begin(exits, engine, request, options, told)
        tale = await _Walk.begin(exits, engine, speaks, options, told)
        for _ in range(options.tales):
            plain_s = await plain.seconds(frames)
            tale_s = await tale.seconds(frames)
            words, seconds = words + tale.take_words(), seconds + tale_s
            ratios.append(plain_s / tale_s)
    return NarrationCost(
        ratio=statistics.median(ratios),
        deltas_per_s=words / seconds,
        longest_wait_units=await _longest_wait(engine, speaks, options.traced_chunks, told),
    )


class _Walk:
    """A session whose walker holds a key, paused between its turns."""

    def __init__(
        self, session: Session, events: AsyncIterator[AnyEvent], settle_frames: int, told: Told
    ) -> None:
        self._session = session
        self._events = events
        self._settle_frames = settle_frames
        self._told = told
        self._words = 0

    @classmethod
    async def begin(
        cls,
        exits: AsyncExitStack,
        engine: Engine,
        request: SessionRequest,
        options: BenchOptions,
        told: Told,
    ) -> "_Walk":
        session = await exits.enter_async_context(
            engine.session(
                model=request.model,
                program=request.program,
                prompt=request.prompt,
                seed=request.seed,
            )
        )
        events = await exits.enter_async_context(aclosing(session.stream()))
        walk = cls(session, events, options.settle_frames, told)
        await take(walk._heard(), options.settle_frames, told)
        for control in session.view.controls:
            if control.keys:
                await session.push_action({control.name: control.keys[-1]}, edge="press")
        await session.pause()
        return walk

    async def seconds(self, frames: int) -> float:
        """Return how long so many frames take."""
        await self._session.resume()
        await take(self._heard(), self._settle_frames, self._told)
        self._words = 0
        spent_s = await seconds_for(self._heard(), frames, self._told)
        await self._session.pause()
        return spent_s

    def take_words(self) -> int:
        """Return how many pieces of text came in the last turn."""
        words, self._words = self._words, 0
        return words

    async def _heard(self) -> AsyncIterator[AnyEvent]:
        async for event in self._events:
            self._words += isinstance(event, TextDelta)
            yield event


async def _longest_wait(engine: Engine, request: SessionRequest, chunks: int, told: Told) -> int:
    """Return the most units of its siblings that any loop has waited for in so many chunks."""
    watch = _Watch(chunks, told)
    opening = StartRequest(
        "bench-trace", request.model, request.program, 0, request.prompt, trace=True
    )
    watch.lease = await engine.pool.lease(opening, watch)
    try:
        if watch.chunks:
            watch.lease.send(PlayheadMoved("bench-trace", watch.chunks - 1))
        async with asyncio.timeout(LIMIT_S):
            await watch.enough.wait()
    finally:
        await watch.lease.release()
    return watch.longest


class _Watch:
    """Hears a traced session, and sees each chunk as it comes."""

    def __init__(self, wanted: int, told: Told) -> None:
        self._wanted = wanted
        self._told = told
        self.lease: WorkerHandle | None = None
        self.enough = asyncio.Event()
        self.chunks = 0
        self.words = 0
        self.longest = 0

    def __call__(self, notice: Notification) -> None:
        match notice:
            case FramesOut(FramesHeader(session=session, chunk=chunk), frames):
                self._told(len(frames))
                self.chunks = chunk + 1
                if self.lease is not None:
                    self.lease.send(PlayheadMoved(session, chunk))
            case TextOut():
                self.words += 1
            case StepTrace(waited=waited):
                self.longest = max(self.longest, waited)
            case _:
                pass
        if self.chunks >= self._wanted and self.words:
            self.enough.set()
