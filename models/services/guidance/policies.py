"""Classifier-free guidance as a policy of the loop (Ho & Salimans 2022, arXiv:2207.12598).

A policy turns a model's predictions with and without the prompt (or other conditions) into one, and
names the space that it combines in (`guided_calls.py`). It is a pure function in two halves: which
forward passes a call needs, and what they make together. So a kernel can put the passes of several
sessions, under several policies, into one batch (`guide` is the short way for one). What a policy
keeps from one call to the next is a value in the session's state.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from reverie.models.services.guidance.calls import (
    EMPTY,
    WHOLE,
    Branch,
    CFGPolicy,
    CombineSpace,
    Condition,
    GuidanceDelta,
    GuidedCall,
    GuidedResult,
    Passes,
    per_clean,
)

__all__ = [
    "EMPTY",
    "WHOLE",
    "AdaptiveGuidance",
    "Branch",
    "CFGPolicy",
    "CombineSpace",
    "Condition",
    "EmbeddedGuidance",
    "GuidanceDelta",
    "GuidedCall",
    "GuidedResult",
    "NoGuidance",
    "OneBatchGuidance",
    "Passes",
    "PerModalityGuidance",
    "Predict",
    "TwoPassGuidance",
    "guide",
    "one_batch",
]

Predict = Callable[[tuple[Branch, ...]], Tensor]
"""Branches -> their predictions one behind the other, [branches * B, ...]."""


@dataclass(frozen=True, slots=True)
class NoGuidance:
    """The prediction with all its conditions, as it is: one pass."""

    space: CombineSpace = CombineSpace.CLEAN

    def passes(self, call: GuidedCall, kept: GuidanceDelta | None) -> Passes:
        """Ask for it."""
        return ((WHOLE,),)

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: GuidanceDelta | None
    ) -> GuidedResult:
        """Return it."""
        return GuidedResult(made[WHOLE])


@dataclass(frozen=True, slots=True)
class TwoPassGuidance:
    """Two forward passes: least memory. The prediction is empty + scale * (prompt - empty)."""

    scale: float
    space: CombineSpace = CombineSpace.CLEAN

    def passes(self, call: GuidedCall, kept: GuidanceDelta | None) -> Passes:
        """Ask for both, one after the other."""
        return ((WHOLE,), (EMPTY,))

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: GuidanceDelta | None
    ) -> GuidedResult:
        """Go `scale` times as far from the empty prompt as the prompt does."""
        return GuidedResult(_combined(made, self.scale))


@dataclass(frozen=True, slots=True)
class OneBatchGuidance:
    """As `TwoPassGuidance`, in one forward pass over twice the batch: fewest kernel launches."""

    scale: float
    space: CombineSpace = CombineSpace.CLEAN

    def passes(self, call: GuidedCall, kept: GuidanceDelta | None) -> Passes:
        """Ask for both at once."""
        return ((WHOLE, EMPTY),)

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: GuidanceDelta | None
    ) -> GuidedResult:
        """Go `scale` times as far from the empty prompt as the prompt does."""
        return GuidedResult(_combined(made, self.scale))


@dataclass(frozen=True, slots=True)
class PerModalityGuidance:
    """A scale for each condition, in a chain (Brooks et al. 2023, arXiv:2211.09800, eq. 3).

    From the prediction without any of them, each condition is added to those before it and counts
    for as much as its scale says: p0 + s1 (p1 - p0) + s2 (p12 - p1) + ..., where p12 sees the first
    two. So the order counts: what the first brings is measured without the second. Conditions that
    are not named are always seen. Branches whose weight is 0 are not computed: with (action, 1),
    (prompt, s) it is `OneBatchGuidance(s)`, with 1 everywhere it is `NoGuidance`.

    Attributes:
        scales: the chain.
    """

    scales: tuple[tuple[Condition, float], ...]
    space: CombineSpace = CombineSpace.CLEAN

    def weights(self) -> dict[Branch, float]:
        """Return what each branch counts; they add up to 1, the whole one comes first."""
        found: dict[Branch, float] = {}
        for index in reversed(range(len(self.scales) + 1)):
            branch = Branch(frozenset(condition for condition, _ in self.scales[index:]))
            into = self.scales[index - 1][1] if index else 1.0
            out_of = self.scales[index][1] if index < len(self.scales) else 0.0
            if weight := into - out_of:
                found[branch] = weight
        return found

    def passes(self, call: GuidedCall, kept: GuidanceDelta | None) -> Passes:
        """Ask for the branches that count, at once."""
        return (tuple(self.weights()),)

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: GuidanceDelta | None
    ) -> GuidedResult:
        """Weigh them."""
        weighed = [weight * made[branch] for branch, weight in self.weights().items()]
        return GuidedResult(sum(weighed[1:], start=weighed[0]))


@dataclass(frozen=True, slots=True)
class EmbeddedGuidance:
    """The scale is an input of the model, which was distilled from guided predictions: one pass."""

    scale: float
    space: CombineSpace = CombineSpace.CLEAN

    def passes(self, call: GuidedCall, kept: GuidanceDelta | None) -> Passes:
        """Ask for the prediction of a model that is told the scale."""
        return ((Branch(told=self.scale),),)

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: GuidanceDelta | None
    ) -> GuidedResult:
        """Return it."""
        return GuidedResult(made[Branch(told=self.scale)])


@dataclass(frozen=True, slots=True)
class AdaptiveGuidance:
    """Measure what the prompt changes, and let it stand for a few calls.

    The prediction is prompt + (scale - 1) * delta, and most passes without the prompt are saved.
    A delta belongs to the weights, the prompt and the chunk that it was measured under; under any
    other it is dropped. What stays as it was, from one level to the next, is the difference in the
    policy's `space`.

    Attributes:
        scale: as in `TwoPassGuidance`; a call that measures gives the same.
        reuses: calls that a delta stands for after the one that measured it.
        low: least noise level at which it may; below, where detail is decided, each call measures.
        high: greatest such level.
    """

    scale: float
    reuses: int = 2
    low: float = 0.0
    high: float = 1.0
    space: CombineSpace = CombineSpace.CLEAN

    def passes(self, call: GuidedCall, kept: GuidanceDelta | None) -> Passes:
        """Ask for the prompt's alone while the delta holds."""
        if self.holds(call, kept):
            return ((WHOLE,),)
        return ((WHOLE, EMPTY),)

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: GuidanceDelta | None
    ) -> GuidedResult:
        """Add the delta, the kept one or a new one."""
        prompt = made[WHOLE]
        if kept is not None and self.holds(call, kept):
            value = kept.value / self._of_native(call)
            reused = replace(kept, reused=kept.reused + 1)
            return GuidedResult(prompt + (self.scale - 1) * value, reused)
        value = (prompt - made[EMPTY]) * self._of_native(call)
        return GuidedResult(_combined(made, self.scale), GuidanceDelta(value, call))

    def holds(self, call: GuidedCall, kept: GuidanceDelta | None) -> bool:
        """Tell whether a kept delta may stand for a measurement."""
        return (
            kept is not None
            and kept.reused < self.reuses
            and self.low <= call.level <= self.high
            and replace(kept.measured, level=call.level) == call
            and self._of_native(kept.measured) != 0
            and self._of_native(call) != 0
        )

    def _of_native(self, call: GuidedCall) -> float:
        """Return what a difference of 1 in the model's own predictions is in the policy's space.

        0 where one of them cannot differ; then each call measures.
        """
        native = per_clean(call.native, call.level)
        return per_clean(self.space, call.level) / native if native else 0.0


def one_batch(scale: float, space: CombineSpace = CombineSpace.CLEAN) -> CFGPolicy:
    """Return the policy for a scale: none at 1, where guidance changes nothing."""
    return NoGuidance(space) if scale == 1 else OneBatchGuidance(scale, space)


def guide(
    policy: CFGPolicy, predict: Predict, call: GuidedCall, kept: GuidanceDelta | None = None
) -> GuidedResult:
    """Run a call's passes and combine them.

    Args:
        policy: how.
        predict: the model, with everything bound but what a branch sees.
        call: which call it is.
        kept: the delta of the call before.
    """
    made: dict[Branch, Tensor] = {}
    for branches in policy.passes(call, kept):
        rows = predict(branches)
        made.update(zip(branches, rows.chunk(len(branches)), strict=True))
    return policy.combine(made, call, kept)


def _combined(made: Mapping[Branch, Tensor], scale: float) -> Tensor:
    prompt, empty = made[WHOLE], made[EMPTY]
    return empty + scale * (prompt - empty)
