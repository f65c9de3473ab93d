"""What training asks of whoever runs the serving loop for it.

Training lies below the runtime and must not import it, so that the composition root (`cli.py`)
hands the runtime's own in: `reverie.engine.rollouts.Rollouts` is a `RolloutMaker`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reverie.models.contract.behavior import ActionRecord, BehaviorRecord
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import Durable, LoopKernel, LoopRequest


class RolledChunk(Protocol):
    """One chunk of one session."""

    @property
    def record(self) -> BehaviorRecord:
        """What was done."""

    @property
    def frames(self) -> Mapping[str, NDArray[np.uint8]]:
        """Frames [F, H, W, 3] by stream."""


class Walks(Protocol):
    """Sessions that advance in step with each other."""

    def open(self, request: LoopRequest, start: Durable | None = None) -> None:
        """Begin a session anew, or on a state that is given."""

    def close(self, session: str) -> None:
        """End a session."""

    def advance(self, steering: Mapping[str, ActionRecord]) -> Mapping[str, RolledChunk]:
        """Make one chunk of every session; nothing is asked of those that are left out."""

    def durable(self, session: str) -> Durable:
        """Return what another session can start from."""


RolloutMaker = Callable[[LoopKernel[Any], ModelInstance], Walks]
