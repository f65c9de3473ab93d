"""The terms of guidance: a call, its branches, and the delta that is kept between calls.

Predictions are of a point on the straight path from clean to noise, x = (1 - level) clean +
level noise. There the clean end, the velocity noise - clean and the noise are affine maps of each
other: a guided prediction whose weights add up to one is the same in each of them. A
delta that is kept from one level for another is not; `per_clean` says how differences scale.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from torch import Tensor


class CombineSpace(StrEnum):
    """The space of predictions, or the one that they are combined in."""

    CLEAN = "clean"
    VELOCITY = "velocity"
    NOISE = "noise"


def per_clean(space: CombineSpace, level: float) -> float:
    """Return a difference of 1 in clean predictions, in another space at a level above 0.

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
    """A condition that a prediction can be made with or without."""

    PROMPT = "prompt"
    ACTION = "action"
    PAST = "past"


@dataclass(frozen=True, slots=True)
class Branch:
    """The conditions of one row of a forward pass.

    Attributes:
        without: conditions that are left out.
        told: the guidance scale as an input of the model, where it takes one.
    """

    without: frozenset[Condition] = frozenset()
    told: float | None = None


WHOLE = Branch()
EMPTY = Branch(frozenset({Condition.PROMPT}))
"""The branch with everything but the prompt."""

Passes = tuple[tuple[Branch, ...], ...]
"""Forward passes in order, and the branches of each."""


@dataclass(frozen=True, slots=True)
class GuidedCall:
    """One call of a model for one session, as a policy sees it.

    Attributes:
        level: noise level, 1 for pure noise.
        weights_version: of the weights that are called.
        prompt: identifies the conditioning.
        chunk: the number of the chunk in progress.
        native: the space of the model's predictions.
    """

    level: float
    weights_version: str
    prompt: str
    chunk: int
    native: CombineSpace = CombineSpace.CLEAN


@dataclass(frozen=True, slots=True)
class GuidanceDelta:
    """The effect of the prompt in an earlier call: the prediction with it minus the one without.

    Attributes:
        value: in the policy's space.
        measured: the call in which it was measured.
        reused: how often it has replaced a measurement since.
    """

    value: Tensor
    measured: GuidedCall
    reused: int = 0


@dataclass(frozen=True, slots=True)
class GuidedResult:
    """A guided prediction in the model's own space, and the delta for the next call."""

    prediction: Tensor
    delta: GuidanceDelta | None = None


class CFGPolicy(Protocol):
    """How predictions with and without some of their conditions are combined into one."""

    @property
    def space(self) -> CombineSpace:
        """The space that predictions are combined in."""

    def passes(self, call: GuidedCall, kept: GuidanceDelta | None) -> Passes:
        """Return the forward passes that the call needs."""

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: GuidanceDelta | None
    ) -> GuidedResult:
        """Combine the predictions of the passes into one."""
