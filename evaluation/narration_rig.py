"""Sessions with narrators: both loops of each, through drivers, scheduler and batches.

The world shows its first picture, which is the simulator's own, then one or two more: the narrator
sees the frames in the cache, which ends with the picture before the newest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from reverie.engine.batch import run_batch
from reverie.engine.driver import LoopDriver
from reverie.engine.emissions import FramesHeader, FramesOut, StepFailed, TextOut
from reverie.engine.errors import RolloutError
from reverie.engine.inputs import ControlId, KeysInput, TurnInput
from reverie.engine.loop_start import LoopStart
from reverie.engine.options import DriverOptions
from reverie.engine.scheduler import StepScheduler
from reverie.models.contract.controls import KeyEdge
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import LoopKernel, LoopRequest

MOVE, HELD = "move", ControlId("held")
OPTIONS = DriverOptions(history_chunks=0, snapshot_every_us=0)
MOST_UNITS = 5_000
"""Units after which a session counts as stuck."""


class NarrationRig(Protocol):
    """N worlds with narrators."""

    def tell(self) -> list[str]:
        """Return everything that each narrator says unasked."""

    def ask(self, questions: Sequence[str]) -> list[str]:
        """Ask each narrator a question and return the answers."""

    def close(self) -> None:
        """Close every session."""


@dataclass(slots=True)
class _Pair:
    """Both loops of one session.

    Attributes:
        frames: how many are shown.
        wanted: how many are needed.
        said: whole utterances, oldest first.
        answers: the answers among them, by turn.
    """

    world: LoopDriver[Any]
    narrator: LoopDriver[Any]
    frames: int = 0
    wanted: int = 1
    said: list[str] = field(default_factory=list)
    answers: dict[ControlId, str] = field(default_factory=dict)
    _open: str = ""

    def hear(self) -> None:
        """Collect the emissions of both loops."""
        for emission in (*self.world.take_emissions(), *self.narrator.take_emissions()):
            match emission:
                case StepFailed(session=session, message=message):
                    raise RolloutError(f"session {session}: {message}")
                case FramesOut(FramesHeader(chunk=chunk)):
                    self.frames += 1
                    self.world.seen(chunk, 0)
                case TextOut():
                    self._open += emission.text
                    if emission.final:
                        self._end(emission.answers)

    def _end(self, answers: ControlId | None) -> None:
        said, self._open = self._open.strip(), ""
        self.said.append(said)
        if answers is not None:
            self.answers[answers] = said


class ServedNarrationRig:
    """Sessions with two loops each, on one instance."""

    def __init__(
        self,
        instance: ModelInstance,
        world: LoopKernel[Any],
        narrator: LoopKernel[Any],
        requests: Sequence[LoopRequest],
        keys: Sequence[str | None],
    ) -> None:
        """Show the first pictures: two of sessions that wait, three of sessions that walk.

        Args:
            instance: the model instance.
            world: the loop that makes pictures.
            narrator: the loop that reads it.
            requests: one for each session, with the parameters of both loops.
            keys: the key that each session holds after its first picture; None waits.
        """
        self._instance = instance
        self._kernels = {world.spec.name: world, narrator.spec.name: narrator}
        self._scheduler = StepScheduler(max_batch=max(1, len(requests)))
        self._pairs = [_pair(instance, world, narrator, request) for request in requests]
        self._asked = 0
        worlds = [pair.world for pair in self._pairs]
        self._run(worlds, lambda pair: pair.frames >= 1)
        for pair, key in zip(self._pairs, keys, strict=True):
            if key is not None:
                pair.world.push([KeysInput(HELD, MOVE, (KeyEdge(key, down=True),))])
            pair.wanted = 2 if key is None else 3
        self._run(worlds, lambda pair: pair.frames >= pair.wanted)

    def tell(self) -> list[str]:
        """Run all narrators until they are silent."""
        self._run([pair.narrator for pair in self._pairs], lambda _: False)
        return [" ".join(pair.said) for pair in self._pairs]

    def ask(self, questions: Sequence[str]) -> list[str]:
        """Send every narrator a turn and run until all are answered."""
        self._asked += 1
        turn = ControlId(f"turn-{self._asked}")
        for pair, text in zip(self._pairs, questions, strict=True):
            pair.narrator.push([TurnInput(turn, text)])
        self._run([pair.narrator for pair in self._pairs], lambda pair: turn in pair.answers)
        if silent := [pair.world.session for pair in self._pairs if turn not in pair.answers]:
            raise RolloutError(f"{', '.join(silent)}: no answer")
        return [pair.answers[turn] for pair in self._pairs]

    def close(self) -> None:
        """Close every session."""
        for pair in self._pairs:
            pair.narrator.close()
            pair.world.close()

    def _run(self, drivers: Sequence[LoopDriver[Any]], done: Callable[[_Pair], bool]) -> None:
        """Run units of these drivers, one for each pair, until all are done or none can run."""
        for _ in range(MOST_UNITS):
            candidates = [
                found
                for pair, driver in zip(self._pairs, drivers, strict=True)
                if not done(pair) and (found := driver.ready(0))
            ]
            picked = {candidate.session for candidate in self._scheduler.pick(candidates)}
            if not picked:
                return
            chosen = [driver for driver in drivers if driver.session in picked]
            run_batch(self._kernels[_loop_of(candidates)], self._instance, chosen, _no_clock)
            for pair in self._pairs:
                pair.hear()
        raise RolloutError(f"the narrators have not finished after {MOST_UNITS} units")


def _pair(
    instance: ModelInstance,
    world: LoopKernel[Any],
    narrator: LoopKernel[Any],
    request: LoopRequest,
) -> _Pair:
    seen: LoopDriver[Any] = LoopDriver(world, instance, request, OPTIONS)
    start: LoopStart[Any] = LoopStart(peers={world.spec.name: lambda: seen.shown_state})
    return _Pair(seen, LoopDriver(narrator, instance, request, OPTIONS, start))


def _loop_of(candidates: Sequence[Any]) -> str:
    return str(candidates[0].plan.batch_key.loop)


def _no_clock() -> int:
    return 0
