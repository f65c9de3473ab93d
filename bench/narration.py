"""What narration costs the frame rate: two sessions in turns, one of them with a narrator.

While one is measured the other is paused.
"""

import statistics
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace

from reverie.bench.frame_timing import OnFrames, seconds_for, take
from reverie.bench.report import NarrationCost
from reverie.bench.sizes import BenchOptions
from reverie.host import Engine
from reverie.models.contract.spec import ModelSpec, ProgramSpec, StreamKind
from reverie.sessions import SessionRequest
from reverie.sessions.client.session import Session
from reverie.sessions.protocol.events import AnyEvent
from reverie.sessions.protocol.media_events import TextDelta

LIMIT_S = 300.0


def program_with_words(spec: ModelSpec) -> ProgramSpec | None:
    """Return the first program that adds text to the loops of the model's first program."""
    shows = spec.programs[0].loops
    for program in spec.programs[1:]:
        more = [spec.loop(name) for name in program.loops[len(shows) :]]
        kinds = {stream.kind for loop in more for stream in loop.streams}
        if program.loops[: len(shows)] == shows and kinds == {StreamKind.TEXT}:
            return program
    return None


async def narration_cost(
    engine: Engine, request: SessionRequest, options: BenchOptions, frames: int, on_frames: OnFrames
) -> NarrationCost | None:
    """Measure turns of at least `frames` frames; None for a model without text."""
    program = program_with_words(engine.specs[request.model])
    if program is None:
        return None
    speaks = replace(request, program=program.name)
    frames = max(frames, options.speaking_frames)
    words, seconds, ratios = 0, 0.0, []
    async with AsyncExitStack() as exits:
        plain = await _Walk.begin(exits, engine, request, options, on_frames)
        narrated = await _Walk.begin(exits, engine, speaks, options, on_frames)
        for _ in range(options.speech_turns):
            plain_s = await plain.seconds(frames)
            narrated_s = await narrated.seconds(frames)
            words, seconds = words + narrated.take_words(), seconds + narrated_s
            ratios.append(plain_s / narrated_s)
    return NarrationCost(
        ratio=statistics.median(ratios),
        deltas_per_s=words / seconds,
    )


class _Walk:
    """A session that holds a key, paused between its turns."""

    def __init__(
        self,
        session: Session,
        events: AsyncIterator[AnyEvent],
        settle_frames: int,
        on_frames: OnFrames,
    ) -> None:
        self._session = session
        self._events = events
        self._settle_frames = settle_frames
        self._on_frames = on_frames
        self._words = 0

    @classmethod
    async def begin(
        cls,
        exits: AsyncExitStack,
        engine: Engine,
        request: SessionRequest,
        options: BenchOptions,
        on_frames: OnFrames,
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
        walk = cls(session, events, options.settle_frames, on_frames)
        await take(walk._counted(), options.settle_frames, on_frames)
        for control in session.view.controls:
            if control.keys:
                await session.push_action({control.name: control.keys[-1]}, edge="press")
        await session.pause()
        return walk

    async def seconds(self, frames: int) -> float:
        """Return the time of a number of frames, in seconds."""
        await self._session.resume()
        await take(self._counted(), self._settle_frames, self._on_frames)
        self._words = 0
        spent_s = await seconds_for(self._counted(), frames, self._on_frames)
        await self._session.pause()
        return spent_s

    def take_words(self) -> int:
        """Return how many pieces of text came in the last turn."""
        words, self._words = self._words, 0
        return words

    async def _counted(self) -> AsyncIterator[AnyEvent]:
        async for event in self._events:
            self._words += isinstance(event, TextDelta)
            yield event
