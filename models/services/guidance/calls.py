"""The words that guidance is spoken of in: what a call is, what its rows see, what is kept of it.

Predictions are of a point on the straight path from clean to noise, x = (1 - level) clean +
level noise. There the clean end, the velocity noise - clean and the noise are affine maps of each
other: a guided prediction whose weights add up to one is the same in each of them. What a policy
keeps from one level for another is not; `per_clean` says how differences scale.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from torch import Tensor


class CombineSpace(StrEnum):
    """What predictions are, or what they are combined as."""

    CLEAN = "clean"
    VELOCITY = "velocity"
    NOISE = "noise"


def per_clean(space: CombineSpace, level: float) -> float:
    """Return what a difference of 1 in clean predictions is in another space, at a level above 0.

    At level 1 the point is the noise, so that predictions of it cannot differ: 0.
    """
    match space:
        case CombineSpace.CLEAN:
            return 1.0
        case CombineSpace.VELOCITY:
            return -1.0 / level
        case CombineSpace.NOISE:
            return -(1.0 - level) / level


class Condition(StrEnum):
    """What a prediction can be conditioned on, and be made without."""

    PROMPT = "prompt"
    ACTION = "action"
    PAST = "past"


@dataclass(frozen=True, slots=True)
class Branch:
    """What a row of a forward pass sees.

    Attributes:
        without: conditions that it does not see.
        told: the scale of guidance that the model itself is told, where it takes one.
    """

    without: frozenset[Condition] = frozenset()
    told: float | None = None


WHOLE = Branch()
EMPTY = Branch(frozenset({Condition.PROMPT}))
"""The branch with everything but the prompt."""

Passes = tuple[tuple[Branch, ...], ...]
"""Forward passes, one after another, and the branches in each."""


@dataclass(frozen=True, slots=True)
class GuidedCall:
    """One call of a model for one session, as a policy sees it.

    Attributes:
        level: noise level, 1 for pure noise.
        weights_version: of the weights that are called.
        prompt: what names the conditioning.
        chunk: which chunk is in the making.
        native: what the model predicts.
    """

    level: float
    weights_version: str
    prompt: str
    chunk: int
    native: CombineSpace = CombineSpace.CLEAN


@dataclass(frozen=True, slots=True)
class GuidanceDelta:
    """What the prompt changed in an earlier call: its prediction less that without it.

    Attributes:
        value: in the policy's space.
        measured: the call in which it was measured.
        reused: how often it has stood in for a measurement since.
    """

    value: Tensor
    measured: GuidedCall
    reused: int = 0


@dataclass(frozen=True, slots=True)
class GuidedResult:
    """A guided prediction, in the model's own space, and what is kept for the next call."""

    prediction: Tensor
    delta: GuidanceDelta | None = None


class CFGPolicy(Protocol):
    """How predictions with and without some of their conditions become one."""

    @property
    def space(self) -> CombineSpace:
        """What predictions are combined as."""

    def passes(self, call: GuidedCall, kept: GuidanceDelta | None) -> Passes:
        """Say which forward passes the call needs."""

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: GuidanceDelta | None
    ) -> GuidedResult:
        """Make one prediction of what the passes gave."""
