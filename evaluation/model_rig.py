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
from reverie.evaluation.narration_rig import NarrationRig, ServedNarrationRig
from reverie.evaluation.worlds import EvaluatedWorld
from reverie.models.contract.behavior import ActionRecord
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import LoopKernel, LoopRequest
from reverie.models.contract.spec import PACE
from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.spec import AR_DECODE, WORLD_MODEL, Pocket

Pictures = NDArray[np.uint8]
Ints = NDArray[np.int64]

SESSIONS = 24
"""Sessions that an instance holds at most."""
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


class ModelRig(Protocol):
    """Opens sessions in some worlds."""

    def stage(self, worlds: Sequence[EvaluatedWorld]) -> RigSessions:
        """Open sessions that are steered and looked at."""

    def teller(self, worlds: Sequence[EvaluatedWorld], ways: Sequence[Action]) -> NarrationRig:
        """Open sessions that tell what they see, after one step or none (`Action.WAIT`)."""


@dataclass(frozen=True, slots=True)
class RigParts:
    """A loaded model and its two loops."""

    instance: ModelInstance
    world: LoopKernel[Any]
    narrator: LoopKernel[Any]

    @classmethod
    def load(cls, checkpoint: str | None, threads: int = 0, sessions: int = SESSIONS) -> "RigParts":
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
        world, narrator = (family.kernel(loop.name, instance) for loop in LOOPS)
        return cls(instance, world, narrator)


@dataclass(frozen=True, slots=True)
class ServedModelRig:
    """Opens sessions of one house that denoise in so many steps.

    Attributes:
        acted: told of each step how many worlds have made it.
    """

    house: RigParts
    steps: int
    acted: Callable[[int], None] = lambda _: None

    def stage(self, worlds: Sequence[EvaluatedWorld]) -> "ServedSessions":
        """Open sessions of the world loop alone."""
        house = self.house
        return ServedSessions(house.world, house.instance, self._requests(worlds), self.acted)

    def teller(
        self, worlds: Sequence[EvaluatedWorld], ways: Sequence[Action]
    ) -> ServedNarrationRig:
        """Open sessions of both loops, whose narrators speak unasked and as fast as they can."""
        house, requests = self.house, self._requests(worlds, **{"narrate": 1.0, PACE: 0.0})
        keys = [next(iter(_HELD[way]), None) for way in ways]
        return ServedNarrationRig(house.instance, house.world, house.narrator, requests, keys)

    def _requests(self, worlds: Sequence[EvaluatedWorld], **chosen: float) -> list[LoopRequest]:
        defaults = {known.name: known.default for loop in LOOPS for known in loop.parameters}
        parameters = {**defaults, "steps": self.steps, **chosen}
        return [
            LoopRequest(f"world-{world.seed}", world.seed, world.prompt, parameters)
            for world in worlds
        ]


class ServedSessions:
    """Sessions of one house, each behind a driver of its own."""

    def __init__(
        self,
        world: LoopKernel[Any],
        instance: ModelInstance,
        requests: Sequence[LoopRequest],
        acted: Callable[[int], None],
    ) -> None:
        self._rollouts = Rollouts(world, instance, max(1, len(requests)), OPTIONS)
        self._acted = acted
        self._sessions = [request.session for request in requests]
        self._prompts: Sequence[str | None] = [None] * len(requests)  # that are yet to be said
        self._newest = self._before = dict.fromkeys(self._sessions, -1)  # numbers of chunks
        for request in requests:
            self._rollouts.open(request)

    def begin(self) -> Pictures:
        """Return the first picture of every session."""
        return self.act(np.full(len(self._sessions), Action.WAIT))

    def act(self, actions: Ints) -> Pictures:
        """Hold the keys that stand for `actions`, and return what comes of them."""
        asked = zip(self._sessions, self._prompts, actions.tolist(), strict=True)
        steering = {
            session: ActionRecord(prompt=prompt, held={"move": _HELD[Action(action)]})
            for session, prompt, action in asked
        }
        rolled = self._rollouts.advance(steering)
        self._acted(len(self._sessions))
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
