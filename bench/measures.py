"""The measurements: each uses one or two sessions that this process watches.

Bare loop and runtime take short turns, so that other load on the machine affects both alike; ratios
are medians over pairs of adjacent turns. With turns of several seconds the ratio of an unchanged
runtime varied between 0.65 and 1.2 on a loaded machine, although its worker was never idle.
"""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace

from reverie.bench.frame_timing import OnFrames, seconds_for, take
from reverie.bench.machine import resident_mib, this_machine
from reverie.bench.narration import narration_cost
from reverie.bench.progress import Progress
from reverie.bench.recording import recording_cost
from reverie.bench.report import BenchReport, Memory, Reaction, Throughput
from reverie.bench.sizes import WARM_UP_CHUNKS, BenchOptions, sized
from reverie.config import Deployment, Setting
from reverie.host import Engine
from reverie.models.bare_loop import BareLoop
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.loop import LoopRequest
from reverie.models.contract.registry import find_family
from reverie.models.contract.spec import LoopSpec, ModelSpec
from reverie.sessions import SessionRequest
from reverie.sessions.client.session import Session
from reverie.sessions.protocol.events import AnyEvent, ControlApplied
from reverie.sessions.protocol.media_events import MediaChunk

SETTLE_CHUNKS = 2
"""Chunks after a pause that are not counted, because the lead still fills."""

SETTLED_FRAMES = 500
"""Frames before memory counts, because pools, caches and allocators still fill."""

MEMORY_EVERY = 500
"""Frames between two reports of the memory."""

FIRST_FRAMES = 5
"""Sessions that are opened to time the first frame."""

TIMED_FRAMES = 24
"""Frames with which a quick run times the model."""

KEY_REPEAT_HZ = 60
"""Commands a second of a held key, more than any real keyboard repeats."""

PROMPT = "a quiet green land"
NAME = "bench"
REQUEST = SessionRequest(NAME, prompt=PROMPT, seed=0)

OnReport = Callable[[BenchReport], None]
"""Called with the results so far, each time that there are more."""


async def run_bench(
    options: BenchOptions, progress: Progress | None = None, on_report: OnReport = lambda _: None
) -> BenchReport:
    """Measure everything, and return it.

    Args:
        options: what to measure.
        progress: shows the progress; None shows nothing.
        on_report: called with the results so far, for a caller that can be cancelled.

    Raises:
        ModelError: the model does not exist, or cannot be loaded.
    """
    progress = progress or Progress(quiet=True)
    on_frames = progress.advance
    family = find_family(options.model)
    loop = family.spec.loop(family.spec.programs[0].loops[0])
    report = BenchReport(family.spec.name, this_machine())
    progress.say("starting a worker")
    async with Engine.from_deployment(_deployment(options.model)) as engine:
        progress.say("timing the model")
        report = replace(report, first_frame_ms=await _first_frame_ms(engine))
        if options.quick:
            fps = await _frames_a_second(engine, loop)
            options = sized(options, fps, loop.chunk_frames)
            report = replace(report, share=options.share, timed_fps=fps)
        progress.expect(options.total_frames(loop.chunk_frames))
        turn = options.chunks * loop.chunk_frames
        progress.say("runtime and bare loop")
        report = replace(report, throughput=await _throughput(engine, options, on_frames))
        on_report(report)
        progress.say("commands")
        report = replace(report, reaction=await _reaction(engine, loop, options.presses, on_frames))
        report = replace(report, busy_ratio=await _busy_ratio(engine, loop, options, on_frames))
        on_report(report)
        progress.say("recordings")
        recording = await recording_cost(engine, REQUEST, options, turn, on_frames)
        report = replace(report, recording=recording)
        on_report(report)
        progress.say("narration")
        narration = await narration_cost(engine, REQUEST, options, turn, on_frames)
        report = replace(report, narration=narration)
        on_report(report)
        progress.say("memory")
        async for memory in _memory(engine, options.frames, on_frames):
            report = replace(report, memory=memory)
            on_report(report)
    return replace(report, complete=True)


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
            await take(events, 1, _ignore)
            times_ms.append(1000 * (time.perf_counter() - started_s))
    return statistics.median(times_ms)


async def _frames_a_second(engine: Engine, loop: LoopSpec) -> float:
    async with (
        engine.session(model=NAME, prompt=PROMPT, seed=0) as session,
        aclosing(session.stream()) as events,
    ):
        await take(events, WARM_UP_CHUNKS * loop.chunk_frames, _ignore)
        return TIMED_FRAMES / await seconds_for(events, TIMED_FRAMES, _ignore)


def _ignore(_: float) -> None:
    pass


async def _throughput(engine: Engine, options: BenchOptions, on_frames: OnFrames) -> Throughput:
    """Measure the bare loop and the runtime in turns; the lead limits the session meanwhile."""
    bare, chunk_frames = _bare_loop(options.model, engine.specs[NAME])
    frames = options.chunks * chunk_frames
    await asyncio.to_thread(bare.advance, WARM_UP_CHUNKS)
    bare_fps, runtime_fps = [], []
    async with (
        engine.session(model=NAME, prompt=PROMPT, seed=0) as session,
        aclosing(session.stream()) as events,
    ):
        await take(events, WARM_UP_CHUNKS * chunk_frames, on_frames)
        for _ in range(options.rounds):
            bare_s = await asyncio.to_thread(bare.advance, options.chunks)
            on_frames(frames)
            bare_fps.append(frames / bare_s)
            await take(events, SETTLE_CHUNKS * chunk_frames, on_frames)
            runtime_fps.append(frames / await seconds_for(events, frames, on_frames))
    bare.close()
    ratios = [runtime / alone for runtime, alone in zip(runtime_fps, bare_fps, strict=True)]
    return Throughput(
        bare_fps=statistics.median(bare_fps),
        runtime_fps=statistics.median(runtime_fps),
        ratio=statistics.median(ratios),
    )


def _bare_loop(model: str, served: ModelSpec) -> tuple[BareLoop, int]:
    """Return a loop of the model in this process, and the frames of its chunk.

    It computes as the model that is served does.
    """
    family = find_family(model)
    loop = served.loop(served.programs[0].loops[0])
    options = LoadOptions(sessions=1)
    if served.speed is not None:
        setting = served.speed.setting
        options = replace(options, precision=setting.precision, threads=setting.threads)
    instance = family.load(options)
    parameters = {parameter.name: parameter.default for parameter in loop.parameters}
    request = LoopRequest("bare", 0, PROMPT, parameters)
    return BareLoop(family.kernel(loop.name, instance), instance, request), loop.chunk_frames


async def _reaction(
    engine: Engine, loop: LoopSpec, presses: int, on_frames: OnFrames
) -> Reaction | None:
    """Press keys repeatedly, each time after a few more frames; None without keys."""
    keys = _keys(loop)
    if not keys:
        return None
    measured = []
    async with (
        engine.session(model=NAME, prompt=PROMPT, seed=0) as session,
        aclosing(session.stream()) as events,
    ):
        await take(events, WARM_UP_CHUNKS * loop.chunk_frames, on_frames)
        for number in range(presses):
            newest = await take(events, loop.chunk_frames + number % 3, on_frames)
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


async def _busy_ratio(
    engine: Engine, loop: LoopSpec, options: BenchOptions, on_frames: OnFrames
) -> float | None:
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
        await take(events, WARM_UP_CHUNKS * loop.chunk_frames, on_frames)
        for _ in range(options.rounds):
            idle_s = await seconds_for(events, frames, on_frames)
            async with asyncio.TaskGroup() as tasks:
                repeating = tasks.create_task(_repeat(session, keys[0]), name="key repeat")
                busy_s = await seconds_for(events, frames, on_frames)
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


async def _memory(engine: Engine, frames: int, on_frames: OnFrames) -> AsyncIterator[Memory]:
    """Yield the memory of a long session at intervals, until its end."""
    settling = min(SETTLED_FRAMES, frames // 2)
    async with (
        engine.session(model=NAME, prompt=PROMPT, seed=0) as session,
        aclosing(session.stream()) as events,
    ):
        await take(events, settling, on_frames)
        settled_mib, taken = resident_mib(), settling
        while taken < frames:
            more = min(MEMORY_EVERY, frames - taken)
            await take(events, more, on_frames)
            taken, now_mib = taken + more, resident_mib()
            yield Memory(taken, settled_mib, now_mib, now_mib - settled_mib)
