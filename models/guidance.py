"""Classifier-free guidance as a policy of the loop (Ho & Salimans 2022, arXiv:2207.12598).

A policy turns a model's predictions with and without the prompt into one, and names the space that
it combines in: guidance on clean-sample predictions is not guidance on velocities. It is a pure
function in two halves: which forward passes a call needs, and what they make together. So a kernel
can put the passes of several sessions, under several policies, into one batch (`guide` is the short
way for one). What a policy keeps from one call to the next is a value in the session's state.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

import torch
from torch import Tensor

Predict = Callable[[Tensor], Tensor]
"""Conditioning [B, D] -> prediction [B, ...], with everything else already bound.

A batch larger than the bound inputs means that they are repeated to match.
"""


class CombineSpace(StrEnum):
    """What the combined predictions are."""

    CLEAN = "clean"
    VELOCITY = "velocity"
    NOISE = "noise"


class Branch(StrEnum):
    """What a row of a forward pass is conditioned on."""

    PROMPT = "prompt"
    EMPTY = "empty"


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
    """

    level: float
    weights_version: str
    prompt: str
    chunk: int


@dataclass(frozen=True, slots=True)
class Delta:
    """What the prompt changed in an earlier call: its prediction less that without it.

    Attributes:
        measured: the call in which it was measured.
        reused: how often it has stood in for a measurement since.
    """

    value: Tensor
    measured: GuidedCall
    reused: int = 0


@dataclass(frozen=True, slots=True)
class Guided:
    """A guided prediction, and what is kept for the next call."""

    prediction: Tensor
    delta: Delta | None = None


class CFGPolicy(Protocol):
    """How the predictions with and without a prompt become one."""

    @property
    def space(self) -> CombineSpace:
        """What the combined predictions are."""

    def passes(self, call: GuidedCall, kept: Delta | None) -> Passes:
        """Say which forward passes the call needs."""

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: Delta | None
    ) -> Guided:
        """Make one prediction of what the passes gave."""


@dataclass(frozen=True, slots=True)
class Unguided:
    """The prediction with the prompt, as it is: one pass."""

    space: CombineSpace = CombineSpace.CLEAN

    def passes(self, call: GuidedCall, kept: Delta | None) -> Passes:
        """Ask for the prompt's."""
        return ((Branch.PROMPT,),)

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: Delta | None
    ) -> Guided:
        """Return it."""
        return Guided(made[Branch.PROMPT])


@dataclass(frozen=True, slots=True)
class TwoPass:
    """Two forward passes: least memory. The prediction is empty + scale * (prompt - empty)."""

    scale: float
    space: CombineSpace = CombineSpace.CLEAN

    def passes(self, call: GuidedCall, kept: Delta | None) -> Passes:
        """Ask for both, one after the other."""
        return ((Branch.PROMPT,), (Branch.EMPTY,))

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: Delta | None
    ) -> Guided:
        """Go `scale` times as far from the empty prompt as the prompt does."""
        return Guided(_combined(made, self.scale))


@dataclass(frozen=True, slots=True)
class OneBatch:
    """One forward pass over twice the batch: fewest kernel launches. As `TwoPass` otherwise."""

    scale: float
    space: CombineSpace = CombineSpace.CLEAN

    def passes(self, call: GuidedCall, kept: Delta | None) -> Passes:
        """Ask for both at once."""
        return ((Branch.PROMPT, Branch.EMPTY),)

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: Delta | None
    ) -> Guided:
        """Go `scale` times as far from the empty prompt as the prompt does."""
        return Guided(_combined(made, self.scale))


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Measure what the prompt changes, and let it stand for a few calls.

    The prediction is prompt + (scale - 1) * delta, and most passes without the prompt are saved.
    A delta belongs to the weights, the prompt and the chunk that it was measured under; under any
    other it is dropped.

    Attributes:
        scale: as in `TwoPass`; a call that measures gives the same.
        reuses: calls that a delta stands for after the one that measured it.
        low: least noise level at which it may; below, where detail is decided, each call measures.
        high: greatest such level.
    """

    scale: float
    reuses: int = 2
    low: float = 0.0
    high: float = 1.0
    space: CombineSpace = CombineSpace.CLEAN

    def passes(self, call: GuidedCall, kept: Delta | None) -> Passes:
        """Ask for the prompt's alone while the delta holds."""
        if self.holds(call, kept):
            return ((Branch.PROMPT,),)
        return ((Branch.PROMPT, Branch.EMPTY),)

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: Delta | None
    ) -> Guided:
        """Add the delta, the kept one or a new one."""
        prompt = made[Branch.PROMPT]
        if kept is not None and self.holds(call, kept):
            reused = replace(kept, reused=kept.reused + 1)
            return Guided(prompt + (self.scale - 1) * kept.value, reused)
        return Guided(_combined(made, self.scale), Delta(prompt - made[Branch.EMPTY], call))

    def holds(self, call: GuidedCall, kept: Delta | None) -> bool:
        """Tell whether a kept delta may stand for a measurement."""
        return (
            kept is not None
            and kept.reused < self.reuses
            and self.low <= call.level <= self.high
            and replace(kept.measured, level=call.level) == call
        )


def one_batch(scale: float) -> CFGPolicy:
    """Return the policy for a scale: none at 1, where guidance changes nothing."""
    return Unguided() if scale == 1 else OneBatch(scale)


def guide(
    policy: CFGPolicy,
    predict: Predict,
    conditions: Mapping[Branch, Tensor],
    call: GuidedCall,
    kept: Delta | None = None,
) -> Guided:
    """Run a call's passes and combine them.

    Args:
        policy: how.
        predict: the model, with everything bound but the conditioning.
        conditions: [B, D] for each branch.
        call: which call it is.
        kept: the delta of the call before.
    """
    made: dict[Branch, Tensor] = {}
    for branches in policy.passes(call, kept):
        rows = predict(torch.cat([conditions[branch] for branch in branches]))
        made.update(zip(branches, rows.chunk(len(branches)), strict=True))
    return policy.combine(made, call, kept)


def _combined(made: Mapping[Branch, Tensor], scale: float) -> Tensor:
    prompt, empty = made[Branch.PROMPT], made[Branch.EMPTY]
    return empty + scale * (prompt - empty)
