"""The model rig: sessions that run together through the serving loop, one chunk at a time.

Every measured picture comes from drivers, scheduler and batches of `engine/` over the kernel that a
worker runs (`engine/rollouts.py`). Keys and prompts go in through the mailbox; going back is a
rewind.

Shapes: N sessions, H = W = 128 pixels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reverie.engine.options import DriverOptions
from reverie.engine.rollouts import Rollouts
from reverie.evaluation.narration_rig import NarrationRig, ServedNarrationRig
from reverie.evaluation.worlds import EvaluatedWorld
from reverie.models.contract.behavior import ActionRecord
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import LoopKernel, LoopRequest
from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.spec import AR_DECODE, WORLD_MODEL, Pocket

Pictures = NDArray[np.uint8]
Ints = NDArray[np.int64]

SESSIONS = 24
"""Largest number of sessions of an instance."""
HISTORY_CHUNKS = 2
LOOPS = (WORLD_MODEL, AR_DECODE)
OPTIONS = DriverOptions(history_chunks=HISTORY_CHUNKS, snapshot_every_us=0, capture=True)

_HELD = {
    Action.WAIT: (),
    Action.UP: ("up",),
    Action.DOWN: ("down",),
    Action.LEFT: ("left",),
    Action.RIGHT: ("right",),
}


class RigSessions(Protocol):
    """N worlds that advance together; all that the trials need from a model."""

    def begin(self) -> Pictures:
        """Return the first picture of every world: uint8 [N, H, W, 3]."""

    def act(self, actions: Ints) -> Pictures:
        """Give every walker one action (`Action` values [N]) and return the next pictures."""

    def say(self, prompts: Sequence[str]) -> None:
        """Give every world a new prompt; it acts with the next picture."""

    def go_back(self) -> None:
        """Undo the last step of every world."""

    def close(self) -> None:
        """Close every session."""


class ModelRig(Protocol):
    """Opens sessions in given worlds."""

    def open_sessions(self, worlds: Sequence[EvaluatedWorld]) -> RigSessions:
        """Open sessions that take actions and prompts."""

    def open_narration(
        self, worlds: Sequence[EvaluatedWorld], ways: Sequence[Action]
    ) -> NarrationRig:
        """Open sessions with narrators, after one step or none (`Action.WAIT`)."""


@dataclass(frozen=True, slots=True)
class RigParts:
    """A loaded model and its two loops."""

    instance: ModelInstance
    world: LoopKernel[Any]
    narrator: LoopKernel[Any]

    @classmethod
    def load(
        cls,
        checkpoint: str | None,
        threads: int = 0,
        sessions: int = SESSIONS,
        precision: str = "auto",
    ) -> "RigParts":
        """Load pocket as a worker does.

        Args:
            checkpoint: weights; None takes the shipped weights.
            threads: CPU threads; 0 takes the number of serving.
            sessions: how many can be open at once.
            precision: as a deployment names it.

        Raises:
            CheckpointError: the weights are missing or do not fit.
        """
        options = LoadOptions(
            checkpoint=checkpoint,
            threads=threads,
            sessions=sessions,
            precision=precision,
            history_chunks=HISTORY_CHUNKS,
        )
        family = Pocket()
        instance = family.load(options)
        world, narrator = (family.kernel(loop.name, instance) for loop in LOOPS)
        return cls(instance, world, narrator)


@dataclass(frozen=True, slots=True)
class ServedModelRig:
    """Opens sessions of a loaded model with a given number of denoise steps.

    Attributes:
        on_step: called for each step with the number of worlds that made it.
    """

    parts: RigParts
    steps: int
    on_step: Callable[[int], None] = lambda _: None

    def open_sessions(self, worlds: Sequence[EvaluatedWorld]) -> "ServedSessions":
        """Open sessions of the world loop only."""
        parts = self.parts
        return ServedSessions(parts.world, parts.instance, self._requests(worlds), self.on_step)

    def open_narration(
        self, worlds: Sequence[EvaluatedWorld], ways: Sequence[Action]
    ) -> ServedNarrationRig:
        """Open sessions of both loops; narrators speak unasked and without a limit of pace."""
        parts, requests = self.parts, self._requests(worlds, narrate=1.0, pace=0.0)
        keys = [next(iter(_HELD[way]), None) for way in ways]
        return ServedNarrationRig(parts.instance, parts.world, parts.narrator, requests, keys)

    def _requests(self, worlds: Sequence[EvaluatedWorld], **chosen: float) -> list[LoopRequest]:
        defaults = {known.name: known.default for loop in LOOPS for known in loop.parameters}
        parameters = {**defaults, "steps": self.steps, **chosen}
        return [
            LoopRequest(f"world-{world.seed}", world.seed, world.prompt, parameters)
            for world in worlds
        ]


class ServedSessions:
    """Sessions of one loaded model, each with its own driver."""

    def __init__(
        self,
        world: LoopKernel[Any],
        instance: ModelInstance,
        requests: Sequence[LoopRequest],
        on_step: Callable[[int], None],
    ) -> None:
        self._rollouts = Rollouts(world, instance, max(1, len(requests)), OPTIONS)
        self._on_step = on_step
        self._sessions = [request.session for request in requests]
        self._prompts: Sequence[str | None] = [None] * len(requests)  # not sent yet
        self._newest = self._before = dict.fromkeys(self._sessions, -1)  # numbers of chunks
        for request in requests:
            self._rollouts.open(request)

    def begin(self) -> Pictures:
        """Return the first picture of every session."""
        return self.act(np.full(len(self._sessions), Action.WAIT))

    def act(self, actions: Ints) -> Pictures:
        """Hold the keys of `actions`, and return the next pictures."""
        rows = zip(self._sessions, self._prompts, actions.tolist(), strict=True)
        asked = {
            session: ActionRecord(prompt=prompt, held={"move": _HELD[Action(action)]})
            for session, prompt, action in rows
        }
        rolled = self._rollouts.advance(asked)
        self._on_step(len(self._sessions))
        self._prompts = [None] * len(self._sessions)
        self._before = self._newest
        self._newest = {session: one.record.chunk for session, one in rolled.items()}
        return np.stack([rolled[session].frames["video"][-1] for session in self._sessions])

    def say(self, prompts: Sequence[str]) -> None:
        """Send every session a prompt with its next chunk."""
        self._prompts = prompts

    def go_back(self) -> None:
        """Rewind every session by one chunk; only the newest chunk can be undone."""
        for session in self._sessions:
            self._rollouts.go_back(session, self._before[session])
        self._newest = self._before

    def close(self) -> None:
        """Close every session."""
        self._rollouts.close_all()
