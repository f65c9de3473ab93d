"""Classifier-free guidance as a policy of the loop (Ho & Salimans 2022, arXiv:2207.12598).

A policy combines a model's predictions with and without the prompt (or other conditions) into one,
in a space that it names (`calls.py`). It is a pure function in two halves: which forward passes a
call needs, and how to combine them. So a kernel can put the passes of several sessions, under
several policies, into one batch; `guide` is the short form for one session. The delta that a policy
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
"""Branches -> their predictions, concatenated: [branches * B, ...]."""


@dataclass(frozen=True, slots=True)
class NoGuidance:
    """The prediction with all its conditions, unchanged: one pass."""

    space: CombineSpace = CombineSpace.CLEAN

    def passes(self, call: GuidedCall, kept: GuidanceDelta | None) -> Passes:
        """Request the one pass."""
        return ((WHOLE,),)

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: GuidanceDelta | None
    ) -> GuidedResult:
        """Return the one prediction."""
        return GuidedResult(made[WHOLE])


@dataclass(frozen=True, slots=True)
class TwoPassGuidance:
    """Two forward passes: least memory. The prediction is empty + scale * (prompt - empty)."""

    scale: float
    space: CombineSpace = CombineSpace.CLEAN

    def passes(self, call: GuidedCall, kept: GuidanceDelta | None) -> Passes:
        """Request two passes."""
        return ((WHOLE,), (EMPTY,))

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: GuidanceDelta | None
    ) -> GuidedResult:
        """Extrapolate from the empty prompt to the prompt by `scale`."""
        return GuidedResult(_combined(made, self.scale))


@dataclass(frozen=True, slots=True)
class OneBatchGuidance:
    """As `TwoPassGuidance`, in one forward pass over twice the batch: fewest kernel launches."""

    scale: float
    space: CombineSpace = CombineSpace.CLEAN

    def passes(self, call: GuidedCall, kept: GuidanceDelta | None) -> Passes:
        """Request one pass of two branches."""
        return ((WHOLE, EMPTY),)

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: GuidanceDelta | None
    ) -> GuidedResult:
        """Extrapolate from the empty prompt to the prompt by `scale`."""
        return GuidedResult(_combined(made, self.scale))


@dataclass(frozen=True, slots=True)
class PerModalityGuidance:
    """A scale for each condition, in a chain (Brooks et al. 2023, arXiv:2211.09800, eq. 3).

    Starting from the prediction without any of them, each condition is added to those before it
    with its own scale: p0 + s1 (p1 - p0) + s2 (p12 - p1) + ..., where p12 has the first two. The
    order matters: the effect of the first is measured without the second. Conditions that are not
    named are always present. Branches whose weight is 0 are not computed: with (action, 1),
    (prompt, s) it is `OneBatchGuidance(s)`, with 1 everywhere it is `NoGuidance`.

    Attributes:
        scales: the conditions in order, and their scales.
    """

    scales: tuple[tuple[Condition, float], ...]
    space: CombineSpace = CombineSpace.CLEAN

    def weights(self) -> dict[Branch, float]:
        """Return the weight of each branch; they add up to 1, and the whole branch comes first."""
        found: dict[Branch, float] = {}
        for index in reversed(range(len(self.scales) + 1)):
            branch = Branch(frozenset(condition for condition, _ in self.scales[index:]))
            into = self.scales[index - 1][1] if index else 1.0
            out_of = self.scales[index][1] if index < len(self.scales) else 0.0
            if weight := into - out_of:
                found[branch] = weight
        return found

    def passes(self, call: GuidedCall, kept: GuidanceDelta | None) -> Passes:
        """Request one pass of all branches with a weight."""
        return (tuple(self.weights()),)

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: GuidanceDelta | None
    ) -> GuidedResult:
        """Add up the weighted predictions."""
        weighed = [weight * made[branch] for branch, weight in self.weights().items()]
        return GuidedResult(sum(weighed[1:], start=weighed[0]))


@dataclass(frozen=True, slots=True)
class EmbeddedGuidance:
    """The scale is an input of the model, which was distilled from guided predictions: one pass."""

    scale: float
    space: CombineSpace = CombineSpace.CLEAN

    def passes(self, call: GuidedCall, kept: GuidanceDelta | None) -> Passes:
        """Request one pass with the scale as an input."""
        return ((Branch(told=self.scale),),)

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: GuidanceDelta | None
    ) -> GuidedResult:
        """Return the one prediction."""
        return GuidedResult(made[Branch(told=self.scale)])


@dataclass(frozen=True, slots=True)
class AdaptiveGuidance:
    """Measure the effect of the prompt, and reuse it for a few calls.

    The prediction is prompt + (scale - 1) * delta, which saves most passes without the prompt. A
    delta belongs to the weights, the prompt and the chunk that it was measured with; for any other
    it is dropped. From one level to the next the difference in the policy's `space` is kept.

    Attributes:
        scale: as in `TwoPassGuidance`; a call that measures gives the same result.
        reuses: how many later calls reuse a delta.
        low: the least noise level at which a delta is reused; below, where detail is decided, each
            call measures.
        high: the greatest such level.
    """

    scale: float
    reuses: int = 2
    low: float = 0.0
    high: float = 1.0
    space: CombineSpace = CombineSpace.CLEAN

    def passes(self, call: GuidedCall, kept: GuidanceDelta | None) -> Passes:
        """Request only the prompt's branch while the delta is valid."""
        if self.holds(call, kept):
            return ((WHOLE,),)
        return ((WHOLE, EMPTY),)

    def combine(
        self, made: Mapping[Branch, Tensor], call: GuidedCall, kept: GuidanceDelta | None
    ) -> GuidedResult:
        """Add the kept delta or a new one."""
        prompt = made[WHOLE]
        if kept is not None and self.holds(call, kept):
            value = kept.value / self._of_native(call)
            reused = replace(kept, reused=kept.reused + 1)
            return GuidedResult(prompt + (self.scale - 1) * value, reused)
        value = (prompt - made[EMPTY]) * self._of_native(call)
        return GuidedResult(_combined(made, self.scale), GuidanceDelta(value, call))

    def holds(self, call: GuidedCall, kept: GuidanceDelta | None) -> bool:
        """Tell whether a kept delta may be reused."""
        return (
            kept is not None
            and kept.reused < self.reuses
            and self.low <= call.level <= self.high
            and replace(kept.measured, level=call.level) == call
            and self._of_native(kept.measured) != 0
            and self._of_native(call) != 0
        )

    def _of_native(self, call: GuidedCall) -> float:
        """Return a difference of 1 in the model's own predictions, in the policy's space.

        It is 0 where one of them cannot differ; then each call measures.
        """
        native = per_clean(call.native, call.level)
        return per_clean(self.space, call.level) / native if native else 0.0


def one_batch(scale: float, space: CombineSpace = CombineSpace.CLEAN) -> CFGPolicy:
    """Return the policy for a scale; at 1, where guidance has no effect, there is none."""
    return NoGuidance(space) if scale == 1 else OneBatchGuidance(scale, space)


def guide(
    policy: CFGPolicy, predict: Predict, call: GuidedCall, kept: GuidanceDelta | None = None
) -> GuidedResult:
    """Run a call's passes and combine them.

    Args:
        policy: how to combine them.
        predict: the model, with everything bound but the branches.
        call: the call.
        kept: the delta of the previous call.
    """
    made: dict[Branch, Tensor] = {}
    for branches in policy.passes(call, kept):
        rows = predict(branches)
        made.update(zip(branches, rows.chunk(len(branches)), strict=True))
    return policy.combine(made, call, kept)


def _combined(made: Mapping[Branch, Tensor], scale: float) -> Tensor:
    prompt, empty = made[WHOLE], made[EMPTY]
    return empty + scale * (prompt - empty)
