"""The interface by which training runs the serving loop.

Training is a layer below the runtime and must not import it, so the composition root
(`commands/train.py`) passes the implementation: `reverie.engine.rollouts.Rollouts` is a
`RolloutMaker`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reverie.models.contract.behavior import ActionRecord, BehaviorRecord
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import Durable, LoopKernel, LoopRequest


class WalkChunk(Protocol):
    """One chunk of one session."""

    @property
    def record(self) -> BehaviorRecord:
        """The prompt, actions and behavior of the chunk."""

    @property
    def frames(self) -> Mapping[str, NDArray[np.uint8]]:
        """Frames [F, H, W, 3] by stream."""


class Walks(Protocol):
    """Sessions that advance in step with each other."""

    def open(self, request: LoopRequest, start: Durable | None = None) -> None:
        """Open a session, new or from a durable state."""

    def close(self, session: str) -> None:
        """End a session."""

    def advance(self, asked: Mapping[str, ActionRecord]) -> Mapping[str, WalkChunk]:
        """Make one chunk of every session; a session that is left out gets no action."""

    def durable(self, session: str) -> Durable:
        """Return a state that another session can start from."""


RolloutMaker = Callable[[LoopKernel[Any], ModelInstance], Walks]
