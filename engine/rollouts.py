"""Sessions without a viewer: a script steers them, and what they did is recorded.

Training and evaluation walk through the very loop that serves: the same driver, batches and kernel.
Only the viewer is missing, so that nothing waits for a playhead.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reverie.engine.batch import run_batch
from reverie.engine.driver import LoopDriver
from reverie.engine.emissions import Emission, Frames, FramesOut, StepFailed
from reverie.engine.errors import RolloutError
from reverie.engine.inputs import (
    AxisInput,
    ControlId,
    ControlInput,
    KeysInput,
    ParameterInput,
    PromptInput,
)
from reverie.engine.loop_start import LoopStart
from reverie.engine.options import DriverOptions
from reverie.engine.scheduler import StepScheduler
from reverie.models.contract.behavior import NOTHING_ASKED, ActionRecord, BehaviorRecord
from reverie.models.contract.controls import KeyEdge
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import Durable, LoopKernel, LoopRequest

SCRIPT = ControlId("script")
WALK = "walk"
OPTIONS = DriverOptions(history_chunks=0, snapshot_every_us=0, snapshots=1, capture=True)

Script = Callable[[str, int], ActionRecord]
"""(session, chunk about to be made) -> what is asked of it."""


@dataclass(frozen=True, slots=True)
class RolloutChunk:
    """One chunk of one session.

    Attributes:
        record: what was done.
        frames: RGB, uint8 [F, H, W, 3], by stream.
    """

    record: BehaviorRecord
    frames: Mapping[str, Frames]


class _Rollout:
    """One session, and what it has said in this round."""

    def __init__(self, driver: LoopDriver[Any]) -> None:
        self.driver = driver
        self.frames: dict[str, Frames] = {}
        self.done: RolloutChunk | None = None
        self._held: dict[str, tuple[str, ...]] = {}

    def steer(self, steering: ActionRecord) -> None:
        """Ask for the next chunk."""
        self.done, self.frames = None, {}
        self.driver.push(self._inputs(steering))

    def hear(self, emissions: Sequence[Emission]) -> None:
        """Keep frames, and the record once the chunk is out."""
        for emission in emissions:
            if isinstance(emission, FramesOut):
                self.frames[emission.header.stream] = emission.frames
            elif isinstance(emission, StepFailed) and emission.fatal:
                raise RolloutError(f"session {self.driver.session}: {emission.message}")
        for record in self.driver.take_behavior():
            self.done = RolloutChunk(record, self.frames)
            self.driver.seen(record.chunk, 0)

    def _inputs(self, steering: ActionRecord) -> list[ControlInput]:
        inputs: list[ControlInput] = []
        if steering.prompt is not None:
            inputs.append(PromptInput(SCRIPT, steering.prompt))
        inputs += [ParameterInput(SCRIPT, *pair) for pair in steering.parameters.items()]
        inputs += [AxisInput(SCRIPT, *pair) for pair in steering.axes.items()]
        for name in {**self._held, **steering.held}:
            before, now = self._held.get(name, ()), steering.held.get(name, ())
            edges = tuple(KeyEdge(key, down=False) for key in before if key not in now)
            edges += tuple(KeyEdge(key, down=True) for key in now if key not in before)
            if edges:
                inputs.append(KeysInput(SCRIPT, name, edges))
        self._held = dict(steering.held)
        return inputs


class Rollouts:
    """Sessions of one loop that advance in step with each other, as many in a batch as may be."""

    def __init__(
        self,
        kernel: LoopKernel[Any],
        instance: ModelInstance,
        max_batch: int = 64,
        options: DriverOptions = OPTIONS,
    ) -> None:
        """Run on `instance`, whose cache pool must hold the sessions that will be open at a time.

        The weights may change between two calls, if `instance.weights_version` does as well.
        The `options` of the drivers must ask for capture.
        """
        assert options.capture, "a chunk is done when its record is there"
        self._kernel = kernel
        self._instance = instance
        self._options = options
        self._scheduler = StepScheduler(max_batch)
        self._sessions: dict[str, _Rollout] = {}

    def open(self, request: LoopRequest, start: Durable | None = None) -> None:
        """Begin a session from its request, or from a given state.

        A session from its request puts out its start frame in the first `advance`.
        """
        driver = LoopDriver(
            self._kernel, self._instance, request, self._options, LoopStart(durable=start)
        )
        self._sessions[request.session] = _Rollout(driver)

    def close(self, session: str) -> None:
        """End a session; one that is not open is ended already."""
        rollout = self._sessions.pop(session, None)
        if rollout is not None:
            rollout.driver.close()
            self._scheduler.forget(session)

    def close_all(self) -> None:
        """End every session."""
        for session in list(self._sessions):
            self.close(session)

    def advance(self, steering: Mapping[str, ActionRecord]) -> dict[str, RolloutChunk]:
        """Make one chunk of every session; nothing is asked of those that `steering` leaves out.

        Raises:
            RolloutError: a session cannot continue; the others stay where they are.
            UnknownControlError: the loop takes no such control.
        """
        for session, rollout in self._sessions.items():
            rollout.steer(steering.get(session, NOTHING_ASKED))
        while waiting := {s: w for s, w in self._sessions.items() if w.done is None}:
            candidates = [rollout.driver.ready(0) for rollout in waiting.values()]
            picked = self._scheduler.pick([found for found in candidates if found])
            drivers = [waiting[candidate.session].driver for candidate in picked]
            run_batch(self._kernel, self._instance, drivers, _no_clock)
            for rollout in waiting.values():
                rollout.hear(rollout.driver.take_emissions())
            if not drivers:
                raise RolloutError(f"{', '.join(waiting)}: nothing to do before the chunk is out")
        return {s: w.done for s, w in self._sessions.items() if w.done is not None}

    def go_back(self, session: str, chunk: int) -> None:
        """Continue a session from right after `chunk`; held keys stay held.

        Raises:
            ChunkNotKeptError: it is not kept any more.
        """
        self._sessions[session].driver.rewind(chunk)

    def durable(self, session: str) -> Durable:
        """Return what another session can start from: the state after the newest chunk.

        Raises:
            NoSnapshotError: there is no chunk yet, or the loop has no state that can be kept.
        """
        driver = self._sessions[session].driver
        driver.snapshot(WALK)
        kept = driver.kept(WALK)
        assert kept is not None, "a snapshot has a durable part"
        return kept


def roll_out(
    rollouts: Rollouts,
    requests: Sequence[LoopRequest],
    script: Script,
    chunks: int,
    starts: Mapping[str, Durable] | None = None,
) -> dict[str, list[RolloutChunk]]:
    """Run sessions from their beginning for so many chunks, then end them.

    Args:
        rollouts: where they run.
        requests: one for each session.
        script: asked for every chunk of every session.
        chunks: of each session.
        starts: given states, by session; others begin from the request.
    """
    made: dict[str, list[RolloutChunk]] = {request.session: [] for request in requests}
    try:
        for request in requests:
            rollouts.open(request, (starts or {}).get(request.session))
        for chunk in range(chunks):
            rolled = rollouts.advance({session: script(session, chunk) for session in made})
            for session, one in rolled.items():
                made[session].append(one)
    finally:
        for session in made:
            rollouts.close(session)
    return made


def _no_clock() -> int:
    return 0
