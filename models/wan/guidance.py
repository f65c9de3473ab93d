"""Guided flows of several sessions, each with its own policy, in as few calls as possible.

Rows with a past and rows without one are different calls. All branches attend to the same cache,
which was written with the prompt: there is no second cache for the empty prompt.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from reverie.models.services.adapters import Mix
from reverie.models.services.guidance.policies import (
    Branch,
    CFGPolicy,
    CombineSpace,
    Condition,
    GuidanceDelta,
    GuidedCall,
    GuidedResult,
    PerModalityGuidance,
    one_batch,
)
from reverie.models.services.guidance.select import GuidanceFactory
from reverie.models.wan.context import Past
from reverie.models.wan.network.transformer import Prompt
from reverie.models.wan.state import WanState

SPACE = CombineSpace.VELOCITY
"""The space of the transformer's predictions, in which they are combined."""


@dataclass(frozen=True, slots=True)
class WanRow:
    """One session's row of a call of the transformer.

    Attributes:
        told: the guidance scale, for weights that take it as an input; None is 1.
    """

    text: Prompt
    x_FZhw: Tensor
    timestep: float
    first_frame: int
    past: Past | None
    mix: Mix
    told: float | None = None


@dataclass(frozen=True, slots=True)
class WanGuidedRow:
    """A row and its guidance.

    Attributes:
        empty: returns the empty prompt, if the policy needs it.
        kept: the delta of the session's previous call.
    """

    row: WanRow
    empty: Callable[[], Prompt]
    policy: CFGPolicy
    call: GuidedCall
    kept: GuidanceDelta | None


def in_one_batch(scale: float) -> CFGPolicy:
    """Return the default policy for a scale."""
    return one_batch(scale, SPACE)


def policy_of(state: WanState, policy_for: GuidanceFactory) -> CFGPolicy:
    """Return a session's policy: for its prompt, and for its past if that has a scale."""
    if state.past_guidance == 1:
        return policy_for(state.guidance)
    chain = ((Condition.PAST, state.past_guidance), (Condition.PROMPT, state.guidance))
    return PerModalityGuidance(chain, SPACE)


def guided_flows(
    flows_of: Callable[[Sequence[WanRow]], Sequence[Tensor]], rows: Sequence[WanGuidedRow]
) -> list[GuidedResult]:
    """Predict flows [F, Z, h, w].

    Args:
        flows_of: calls the transformer on rows that all have a past, or all have none.
    """
    passes = [row.policy.passes(row.call, row.kept) for row in rows]
    made: list[dict[Branch, Tensor]] = [{} for _ in rows]
    for turn in range(max(len(needed) for needed in passes)):
        asked = [
            (index, branch, _branched(rows[index], branch))
            for index, needed in enumerate(passes)
            for branch in (needed[turn] if turn < len(needed) else ())
        ]
        # Whole rows first, because they keep the order in which their past was read.
        asked.sort(key=lambda each: len(each[1].without))
        for sees in (True, False):
            call = [each for each in asked if (each[2].past is not None) is sees]
            flows = flows_of([row for _, _, row in call]) if call else ()
            for (index, branch, _), flow_FZhw in zip(call, flows, strict=True):
                made[index][branch] = flow_FZhw
    return [
        row.policy.combine(found, row.call, row.kept) for row, found in zip(rows, made, strict=True)
    ]


def scales_of(rows: Sequence[WanRow]) -> Tensor | None:
    """Return the guidance scales as an input, [B]; None when no row has one."""
    if all(row.told is None for row in rows):
        return None
    scales = [1.0 if row.told is None else row.told for row in rows]
    return torch.tensor(scales, device=rows[0].x_FZhw.device)


def _branched(row: WanGuidedRow, branch: Branch) -> WanRow:
    assert Condition.ACTION not in branch.without, "Wan has no actions"
    return replace(
        row.row,
        text=row.empty() if Condition.PROMPT in branch.without else row.row.text,
        past=None if Condition.PAST in branch.without else row.row.past,
        told=branch.told,
    )
