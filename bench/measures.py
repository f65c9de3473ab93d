"""The measurements: each one a session or two, watched by this process.

Bare loop and runtime take short turns, so that a machine that is busy with something else is as
busy for both; ratios are medians over pairs of turns next to each other. With turns of seconds the
ratio of one unchanged runtime wandered between 0.65 and 1.2 on a machine with other work; the
worker waited for nobody meanwhile.
"""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from reverie.bench.machine import resident_mib, this_machine
from reverie.bench.narration import narration_cost
from reverie.bench.recording import recording_cost
from reverie.bench.report import Memory, Reaction, Report, Throughput
from reverie.bench.taking import seconds_for, take
from reverie.config import Deployment, Setting
from reverie.host import Engine
from reverie.models.bare_loop import BareLoop
from reverie.models.instance import LoadOptions
from reverie.models.loop import LoopRequest
from reverie.models.registry import find_family
from reverie.models.spec import LoopSpec
from reverie.sessions.events import AnyEvent, ControlApplied, MediaChunk
from reverie.sessions.session import Session

WARM_UP_CHUNKS = 8
"""Chunks that are not counted: until then the context window still fills."""

SETTLE_CHUNKS = 2
"""Chunks that are not counted after a rest: until then the lead still fills."""

SETTLED_FRAMES = 500
"""Frames after which memory counts: until then pools, caches and allocators still fill."""

FIRST_FRAMES = 5
"""Sessions that are opened to time the first frame."""

KEY_REPEAT_HZ = 60
"""Commands a second of a keyboard that repeats a held key faster than any real one."""

PROMPT = "a quiet green land"
NAME = "bench"
STRIPES = "reverie.bench.stripes:stripes"


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What to measure, and how long.

    Attributes:
        rounds: how often bare loop and runtime take turns.
        chunks: how many chunks each of them makes in one turn.
        presses: how many commands are timed.
        frames: length of the memory run.
    """

    model: str = "pocket"
    rounds: int = 30
    chunks: int = 10
    presses: int = 20
    frames: int = 20_000

    @classmethod
    def chosen(cls, model: str, *, quick: bool, frames: int | None) -> "BenchOptions":
        """Return the options for a run that is thorough, or takes about a minute."""
        if quick:
            return cls(model, rounds=9, chunks=8, presses=8, frames=frames or 2_000)
        return cls(model, frames=frames or 20_000)


async def run_bench(options: BenchOptions) -> Report:
    """Measure everything; takes from one to several minutes.

    Raises:
        ModelError: there is no such model, or it cannot be loaded.
    """
    machine = this_machine()
    family = find_family(options.model)
    loop = family.spec.loop(family.spec.programs[0].loops[0])
    async with Engine.from_deployment(_deployment(options.model)) as engine:
        first_frame_ms = await _first_frame_ms(engine)
        throughput = await _throughput(engine, options)
        reaction = await _reaction(engine, loop, options.presses)
        busy_ratio = await _busy_ratio(engine, loop, options)
        recording = await recording_cost(
            engine, NAME, PROMPT, options.rounds, options.chunks * loop.chunk_frames
        )
        narration = await narration_cost(
            engine, NAME, PROMPT, max(2, options.rounds // 3), options.chunks * loop.chunk_frames
        )
        own = await _memory(
            engine, family.spec.name, min(options.frames, 4 * options.rounds * options.chunks)
        )
    async with Engine.from_deployment(_deployment(STRIPES)) as engine:
        long_run = await _memory(engine, "stripes", options.frames)
    return Report(
        model=family.spec.name,
        machine=machine,
        throughput=throughput,
        reaction=reaction,
        busy_ratio=busy_ratio,
        recording=recording,
        narration=narration,
        first_frame_ms=first_frame_ms,
        memory=(own, long_run),
    )


def _deployment(model: str) -> Deployment:
    models = [{"name": NAME, "family": model}]
    return Deployment.read(settings=[Setting(("pool", "models"), models, "bench")])


async def _first_frame_ms(engine: Engine) -> float:
    times_ms = []
    for seed in range(FIRST_FRAMES):
        started_s = time.perf_counter()
        async with (
            engine.session(model=NAME, prompt=PROMPT, seed=seed) as session,
            aclosing(session.stream()) as events,
        ):
            await take(events, 1)
            times_ms.append(1000 * (time.perf_counter() - started_s))
    return statistics.median(times_ms)


async def _throughput(engine: Engine, options: BenchOptions) -> Throughput:
    """Let the bare loop and the runtime take turns; the session rests while nobody iterates."""
    bare, chunk_frames = _bare_loop(options.model)
    frames = options.chunks * chunk_frames
    await asyncio.to_thread(bare.advance, WARM_UP_CHUNKS)
    bare_fps, runtime_fps = [], []
    async with (
        engine.session(model=NAME, prompt=PROMPT, seed=0) as session,
        aclosing(session.stream()) as events,
    ):
        await take(events, WARM_UP_CHUNKS * chunk_frames)
        for _ in range(options.rounds):
            bare_s = await asyncio.to_thread(bare.advance, options.chunks)
            bare_fps.append(frames / bare_s)
            await take(events, SETTLE_CHUNKS * chunk_frames)
            runtime_fps.append(frames / await seconds_for(events, frames))
    bare.close()
    ratios = [runtime / alone for runtime, alone in zip(runtime_fps, bare_fps, strict=True)]
    return Throughput(
        bare_fps=statistics.median(bare_fps),
        runtime_fps=statistics.median(runtime_fps),
        ratio=statistics.median(ratios),
    )


def _bare_loop(model: str) -> tuple[BareLoop, int]:
    """Return a loop of the model in this process, and the frames of its chunk."""
    family = find_family(model)
    loop = family.spec.loop(family.spec.programs[0].loops[0])
    instance = family.load(LoadOptions(sessions=1))
    parameters = {parameter.name: parameter.default for parameter in loop.parameters}
    request = LoopRequest("bare", 0, PROMPT, parameters)
    return BareLoop(family.kernel(loop.name, instance), instance, request), loop.chunk_frames


async def _reaction(engine: Engine, loop: LoopSpec, presses: int) -> Reaction | None:
    """Press a key again and again, each time after a few frames more; None without keys."""
    keys = _keys(loop)
    if not keys:
        return None
    measured = []
    async with (
        engine.session(model=NAME, prompt=PROMPT, seed=0) as session,
        aclosing(session.stream()) as events,
    ):
        await take(events, WARM_UP_CHUNKS * loop.chunk_frames)
        for number in range(presses):
            newest = await take(events, loop.chunk_frames + number % 3)
            control, key = keys[number % len(keys)]
            started_s = time.perf_counter()
            command = await session.push_action({control: key})
            measured.append(await _reaction_to(events, command, newest, started_s))
    return Reaction(
        steps_to_act=statistics.median(one.steps_to_act for one in measured),
        steps_to_frame=statistics.median(one.steps_to_frame for one in measured),
        frames_between=statistics.median(one.frames_between for one in measured),
        milliseconds=statistics.median(one.milliseconds for one in measured),
    )


async def _reaction_to(
    events: AsyncIterator[AnyEvent], command: str, newest: MediaChunk, started_s: float
) -> Reaction:
    applied: ControlApplied | None = None
    between = 0
    async for event in events:
        if isinstance(event, ControlApplied) and event.control == command:
            applied = event
        elif isinstance(event, MediaChunk):
            if applied is not None and event.pts_us >= applied.pts_us:
                return Reaction(
                    steps_to_act=applied.step - newest.step,
                    steps_to_frame=event.step - newest.step,
                    frames_between=between,
                    milliseconds=1000 * (time.perf_counter() - started_s),
                )
            between += 1
    raise RuntimeError("the session ended in the middle of a measurement")


async def _busy_ratio(engine: Engine, loop: LoopSpec, options: BenchOptions) -> float | None:
    """Return the frame rate while a key repeats, over that of an idle keyboard; None without keys.

    Both take turns in one session.
    """
    keys = _keys(loop)
    if not keys:
        return None
    frames = options.chunks * loop.chunk_frames
    ratios = []
    async with (
        engine.session(model=NAME, prompt=PROMPT, seed=0) as session,
        aclosing(session.stream()) as events,
    ):
        await take(events, WARM_UP_CHUNKS * loop.chunk_frames)
        for _ in range(options.rounds):
            idle_s = await seconds_for(events, frames)
            async with asyncio.TaskGroup() as tasks:
                repeating = tasks.create_task(_repeat(session, keys[0]), name="key repeat")
                busy_s = await seconds_for(events, frames)
                repeating.cancel()
            ratios.append(idle_s / busy_s)
    return statistics.median(ratios)


async def _repeat(session: Session, key: tuple[str, str]) -> None:
    control, name = key
    while True:
        await session.push_action({control: name})
        await asyncio.sleep(1 / KEY_REPEAT_HZ)


def _keys(loop: LoopSpec) -> list[tuple[str, str]]:
    return [(control.name, key) for control in loop.controls for key in control.keys]


async def _memory(engine: Engine, model: str, frames: int) -> Memory:
    settling = min(SETTLED_FRAMES, frames // 2)
    async with (
        engine.session(model=NAME, prompt=PROMPT, seed=0) as session,
        aclosing(session.stream()) as events,
    ):
        await take(events, settling)
        settled_mib = resident_mib()
        await take(events, frames - settling)
        end_mib = resident_mib()
    return Memory(model, frames, settled_mib, end_mib, end_mib - settled_mib)
