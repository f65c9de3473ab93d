"""Run every branch of a model once before a session waits for it.

A short session of each program, through the real drivers: two chunks, then a new prompt, every
control and a turn, then an interrupt, then a revival from the durable states. Keys are pressed as a
person presses them: while the next chunk waits for the viewer, so that it is made again, then held,
then let go. What fails here fails at load, not in a session.
"""

from collections.abc import Callable

import numpy as np

from reverie.engine.batch import run_batch
from reverie.engine.emissions import (
    Emission,
    FaultCode,
    FramesHeader,
    FramesOut,
    SamplesOut,
    SnapshotOut,
    StepFailed,
    TextOut,
)
from reverie.engine.inputs import (
    AxisInput,
    ControlId,
    ControlInput,
    KeysInput,
    PromptInput,
    StreamInput,
    TurnInput,
)
from reverie.engine.scheduler import StepScheduler
from reverie.gpu_pool.wire.errors import WarmUpError
from reverie.gpu_pool.wire.session_messages import OpenSession, PlayheadMoved
from reverie.gpu_pool.worker.loaded_model import LoadedModel
from reverie.gpu_pool.worker.worker_session import WorkerSession
from reverie.models.contract.controls import KeyEdge, MediaInput, Merge, ParameterRole
from reverie.models.contract.loop import Durable
from reverie.models.contract.spec import InputSpec, LoopSpec, StreamKind

_SESSION = "warm-up"
_CONTROL = ControlId("warm-up")
_UNITS = 10_000


class WarmUp:
    """One program of a model, run for a few chunks."""

    def __init__(self, model: LoadedModel, program: str, now_us: Callable[[], int]) -> None:
        self._model = model
        self._program = program
        self._loops = model.loops(program)
        self._now_us = now_us
        self._durables: dict[str, Durable] = {}
        self._scheduler = StepScheduler()
        self._unseen: list[tuple[int, str]] = []  # chunks, with their loops
        self._chunks = 0  # put out by the leading loop
        self._spoken: set[str] = set()  # loops of text that have ended an utterance

    def run(self) -> None:
        """Run every branch, and leave nothing behind.

        Raises:
            WarmUpError: a step failed, or nothing came out.
        """
        self._live(self._drive)
        if self._durables:
            self._live(self._chunk, tuple(self._durables.values()))

    def _live(
        self, what: Callable[[WorkerSession], None], durables: tuple[Durable, ...] = ()
    ) -> None:
        specs = self._model.instance.spec.program_parameters(self._program)
        # No viewer reads this, so text may come as fast as it can.
        paces = (spec for spec in specs if spec.role is ParameterRole.PACE)
        hasty = {spec.name: max(0.0, spec.low) for spec in paces}
        opening = OpenSession(
            0, _SESSION, self._program, seed=0, prompt="", parameters=hasty, durables=durables
        )
        worker_session = WorkerSession(self._model, opening)
        self._unseen.clear()
        self._chunks = 0  # numbers begin at 0, in a revived session as well
        try:
            worker_session.watched(True)
            what(worker_session)
        finally:
            worker_session.close()

    def _drive(self, worker_session: WorkerSession) -> None:
        self._chunk(worker_session)
        self._chunk(worker_session)
        self._fill_lead(worker_session)
        for loop in self._loops:
            worker_session.push(_every_control(loop))
        self._fill_lead(worker_session)  # what waited is made again, with the key in it
        self._see(worker_session)
        self._chunk(worker_session)
        self._chunk(worker_session)
        asked = {loop.name for loop in self._loops if loop.takes_turns}
        self._until(worker_session, lambda: asked <= self._spoken)
        for loop in self._loops:
            worker_session.push(_releases(loop))
        worker_session.interrupt(0, None)
        self._chunk(worker_session)

    def _chunk(self, worker_session: WorkerSession) -> None:
        """Run until one more chunk is out, and seen."""
        chunks = self._chunks
        self._until(worker_session, lambda: self._chunks > chunks)

    def _until(self, worker_session: WorkerSession, done: Callable[[], bool]) -> None:
        """Run units until something is so; a loop that only answers gets a turn."""
        answerable = [item for loop in self._loops for item in _everything_answered(loop)]
        for _ in range(_UNITS):
            if done():
                return
            ran = self._unit(worker_session)
            self._see(worker_session)
            if not ran:
                if not answerable:
                    break
                worker_session.push(answerable)
                answerable = []
        raise WarmUpError(f"program {self._program} puts nothing out")

    def _fill_lead(self, worker_session: WorkerSession) -> None:
        """See nothing until the loops that a viewer paces wait for it."""
        for _ in range(_UNITS):
            if not self._unit(worker_session, paced=True):
                return

    def _unit(self, worker_session: WorkerSession, *, paced: bool = False) -> bool:
        """Run a unit, of paced loops alone if need be; False when there is none."""
        picked = self._scheduler.pick(
            [
                candidate
                for candidate in worker_session.candidates(self._now_us())
                if not paced or worker_session.driver(candidate.owner.loop).is_paced
            ]
        )
        for candidate in picked:
            driver = worker_session.driver(candidate.owner.loop)
            kernel = self._model.kernels[driver.loop]
            run_batch(kernel, self._model.instance, [driver], self._now_us)
        self._hear(worker_session.take_emissions())
        return bool(picked)

    def _see(self, worker_session: WorkerSession) -> None:
        for chunk, loop in self._unseen:
            moved = PlayheadMoved(worker_session.leading.session, chunk, loop)
            worker_session.seen(moved, self._now_us())
        self._unseen.clear()

    def _hear(self, emissions: list[Emission]) -> None:
        for emission in emissions:
            match emission:
                case StepFailed(loop=loop, message=message, code=FaultCode.OUT_OF_MEMORY as code):
                    raise WarmUpError(f"loop {loop}: {message}", code)
                case StepFailed(loop=loop, message=message):
                    raise WarmUpError(f"loop {loop}: {message}")
                case SnapshotOut(durable=durable):
                    self._durables[durable.loop] = durable
                case FramesOut(FramesHeader(chunk=chunk, loop=loop)):
                    self._shown(chunk, loop)
                case SamplesOut(chunk=chunk, loop=loop):
                    self._shown(chunk, loop)
                case TextOut(final=True, loop=loop):
                    self._spoken.add(loop)
                    if loop == self._loops[0].name:
                        self._chunks = max(self._chunks, emission.chunk + 1)
                case _:
                    pass

    def _shown(self, chunk: int, loop: str) -> None:
        self._chunks = max(self._chunks, chunk + 1)
        self._unseen.append((chunk, loop))


def _everything_answered(spec: LoopSpec) -> tuple[ControlInput, ...]:
    turns = (TurnInput(_CONTROL, "what is there?"),) if spec.takes_turns else ()
    return (*_every_medium(spec), *turns)


def _every_medium(spec: LoopSpec) -> tuple[ControlInput, ...]:
    taken = (each for each in spec.inputs if each.capacity)
    return tuple(StreamInput(_CONTROL, each.name, _blank(each)) for each in taken)


def _blank(spec: InputSpec) -> MediaInput:
    if spec.kind is StreamKind.AUDIO:
        return MediaInput(0, np.zeros((round(spec.rate_hz / 50), spec.channels), np.float32))
    return MediaInput(0, np.zeros((spec.height, spec.width, 3), np.uint8), last=True)


def _every_control(spec: LoopSpec) -> tuple[ControlInput, ...]:
    inputs: list[ControlInput] = [*_everything_answered(spec)]
    if spec.prompt_tokens:
        inputs.append(PromptInput(_CONTROL, "a quiet place"))
    for control in spec.controls:
        if control.merge is Merge.EDGES:
            inputs.append(KeysInput(_CONTROL, control.name, (KeyEdge(control.keys[0], True),)))
        elif control.merge is Merge.SUM:
            inputs.append(AxisInput(_CONTROL, control.name, control.high))
    return tuple(inputs)


def _releases(spec: LoopSpec) -> tuple[ControlInput, ...]:
    return tuple(
        KeysInput(_CONTROL, control.name, (KeyEdge(control.keys[0], False),))
        for control in spec.controls
        if control.merge is Merge.EDGES
    )
