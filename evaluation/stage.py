"""The stage: sessions that play together through the serving loop, a chunk at a time.

Every picture that is measured comes out of drivers, scheduler and batches of `engine/` over the
kernel that a worker runs (`engine/rollouts.py`): keys and prompts go in through the mailbox, going
back is a rewind.

Shapes: N sessions, H = W = 128 pixels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reverie.engine.options import DriverOptions
from reverie.engine.rollouts import Rollouts
from reverie.evaluation.worlds import World
from reverie.models.behavior import Steering
from reverie.models.instance import LoadOptions, ModelInstance
from reverie.models.loop import LoopKernel, LoopRequest
from reverie.models.pocket.biomes import Action
from reverie.models.pocket.spec import WORLD_MODEL, Pocket

Pictures = NDArray[np.uint8]
Ints = NDArray[np.int64]

SESSIONS = 24
"""Sessions that an instance holds at most."""
HISTORY_CHUNKS = 2
OPTIONS = DriverOptions(history_chunks=HISTORY_CHUNKS, snapshot_every_us=0, capture=True)

_HELD = {
    Action.WAIT: (),
    Action.UP: ("up",),
    Action.DOWN: ("down",),
    Action.LEFT: ("left",),
    Action.RIGHT: ("right",),
}


class Stage(Protocol):
    """N worlds that move in step; what is measured needs to know no more of a model."""

    def begin(self) -> Pictures:
        """Return the first picture of every world: uint8 [N, H, W, 3]."""

    def act(self, actions: Ints) -> Pictures:
        """Let every walker act once (`Action` values [N]) and return the next pictures."""

    def say(self, prompts: Sequence[str]) -> None:
        """Give every world a new prompt; it acts from the next picture on."""

    def go_back(self) -> None:
        """Undo the last step of every world."""

    def close(self) -> None:
        """Give everything back."""


Theatre = Callable[[Sequence[World]], Stage]
"""Opens a stage for some worlds."""


@dataclass(frozen=True, slots=True)
class House:
    """A loaded model and its world loop."""

    instance: ModelInstance
    kernel: LoopKernel[Any]

    @classmethod
    def load(cls, checkpoint: str | None, threads: int = 0, sessions: int = SESSIONS) -> "House":
        """Load pocket as a worker does.

        Args:
            checkpoint: weights; None takes those that ship.
            threads: CPU threads; 0 takes as many as in serving.
            sessions: how many can be open at once.

        Raises:
            CheckpointError: the weights are missing or do not fit.
        """
        options = LoadOptions(
            checkpoint=checkpoint,
            threads=threads,
            sessions=sessions,
            history_chunks=HISTORY_CHUNKS,
        )
        family = Pocket()
        instance = family.load(options)
        return cls(instance, family.kernel(WORLD_MODEL.name, instance))

    def theatre(self, steps: int) -> Theatre:
        """Return what opens stages whose sessions denoise in so many steps."""
        return lambda worlds: ServedStage(self, worlds, steps)


class ServedStage:
    """Sessions of one house, each behind a driver of its own."""

    def __init__(self, house: House, worlds: Sequence[World], steps: int) -> None:
        self._rollouts = Rollouts(house.kernel, house.instance, max(1, len(worlds)), OPTIONS)
        self._sessions = [f"world-{world.seed}" for world in worlds]
        self._prompts: Sequence[str | None] = [None] * len(worlds)  # that are yet to be said
        self._newest = self._before = dict.fromkeys(self._sessions, -1)  # numbers of chunks
        parameters = {known.name: known.default for known in WORLD_MODEL.parameters}
        parameters["steps"] = steps
        for session, world in zip(self._sessions, worlds, strict=True):
            self._rollouts.open(LoopRequest(session, world.seed, world.prompt, parameters))

    def begin(self) -> Pictures:
        """Return the first picture of every session."""
        return self.act(np.full(len(self._sessions), Action.WAIT))

    def act(self, actions: Ints) -> Pictures:
        """Hold the keys that stand for `actions`, and return what comes of them."""
        asked = zip(self._sessions, self._prompts, actions.tolist(), strict=True)
        steering = {
            session: Steering(prompt=prompt, held={"move": _HELD[Action(action)]})
            for session, prompt, action in asked
        }
        rolled = self._rollouts.advance(steering)
        self._prompts = [None] * len(self._sessions)
        self._before = self._newest
        self._newest = {session: one.record.chunk for session, one in rolled.items()}
        return np.stack([rolled[session].frames["video"][-1] for session in self._sessions])

    def say(self, prompts: Sequence[str]) -> None:
        """Have every session take a prompt with its next chunk."""
        self._prompts = prompts

    def go_back(self) -> None:
        """Rewind every session by one chunk; only the newest can be taken back."""
        for session in self._sessions:
            self._rollouts.go_back(session, self._before[session])
        self._newest = self._before

    def close(self) -> None:
        """Close every session."""
        self._rollouts.close_all()
