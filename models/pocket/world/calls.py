"""Calls of the world model for several sessions at once: denoise steps and context passes.

Rows of a call are independent of each other, so sessions at different noise levels, and the two
branches of guidance, share a forward pass.

Shapes: B rows, Z latent channels on a grid h x w, T size of a text embedding.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from reverie.models.pocket.network.frame_inputs import FrameCondition, Past
from reverie.models.pocket.network.world_model import WorldModel
from reverie.models.pocket.world.past_rows import PocketPastRow, joined
from reverie.models.services.guidance.policies import (
    WHOLE,
    Branch,
    CFGPolicy,
    Condition,
    GuidanceDelta,
    GuidedCall,
    GuidedResult,
)


@dataclass(frozen=True, slots=True)
class CallRow:
    """The world model's inputs for one frame.

    Attributes:
        point_Zhw: the frame between noise and latents.
        level: its noise level.
        previous_Zhw: latents of the frame before it.
        stance: what the walker does, and which way he looks (`walker.stance_of`).
        text_T: the prompt's embedding.
        past: the frames that it sees; None for the first frame.
        told: the guidance scale, for weights that take it as an input; 1 is none.
    """

    point_Zhw: Tensor
    level: float
    previous_Zhw: Tensor
    stance: int
    text_T: Tensor
    past: PocketPastRow | None
    told: float = 1.0


@dataclass(frozen=True, slots=True)
class PocketGuidedRow:
    """A row with its guidance.

    Attributes:
        empty: embeds the empty prompt, if the policy needs it.
        idle: the stance of a walker who waits.
        kept: what the policy kept from the session's previous call.
    """

    row: CallRow
    empty: Callable[[], Tensor]
    idle: int
    policy: CFGPolicy
    call: GuidedCall
    kept: GuidanceDelta | None


def predicted(world: WorldModel, rows: Sequence[CallRow]) -> Tensor:
    """Return the clean latents [B, Z, h, w] of rows, from one pass; see `_inputs`."""
    return world.predict(*_inputs(rows))


def remembered(world: WorldModel, rows: Sequence[CallRow]) -> Tensor:
    """Return what a cache keeps of finished rows [B, 2, L, A, N, d], from one pass."""
    return world.remember(*_inputs(rows))


def _inputs(
    rows: Sequence[CallRow],
) -> tuple[Tensor, Tensor, list[FrameCondition], Past | None]:
    """Put rows together; all have a past of equal length, or none has a past."""
    pasts = [row.past for row in rows if row.past is not None]
    assert len(pasts) in (0, len(rows)), "units with equal batch keys see equally many frames"
    return (
        torch.stack([row.point_Zhw for row in rows]),
        torch.stack([row.previous_Zhw for row in rows]),
        [FrameCondition(row.level, row.stance, row.text_T, row.told) for row in rows],
        joined(pasts) if pasts else None,
    )


def guided_rows(world: WorldModel, rows: Sequence[PocketGuidedRow]) -> list[GuidedResult]:
    """Predict clean latents, each row under its own policy, in few forward passes."""
    passes = [row.policy.passes(row.call, row.kept) for row in rows]
    made: list[dict[Branch, Tensor]] = [{} for _ in rows]
    for turn in range(max(len(needed) for needed in passes)):
        asked = [
            (index, branch)
            for index, needed in enumerate(passes)
            for branch in (needed[turn] if turn < len(needed) else ())
        ]
        # The whole rows first: they keep the order in which their past was read.
        asked.sort(key=lambda row: len(row[1].without))
        clean_BZhw = predicted(world, [_branched(rows[index], branch) for index, branch in asked])
        for (index, branch), clean_Zhw in zip(asked, clean_BZhw, strict=True):
            made[index][branch] = clean_Zhw
    return [_combined(row, found) for row, found in zip(rows, made, strict=True)]


def _branched(row: PocketGuidedRow, branch: Branch) -> CallRow:
    if branch == WHOLE:
        return row.row
    assert Condition.PAST not in branch.without, "pocket sees its past in every row"
    return replace(
        row.row,
        text_T=row.empty() if Condition.PROMPT in branch.without else row.row.text_T,
        stance=row.idle if Condition.ACTION in branch.without else row.row.stance,
        told=row.row.told if branch.told is None else branch.told,
    )


def _combined(row: PocketGuidedRow, made: Mapping[Branch, Tensor]) -> GuidedResult:
    return row.policy.combine(made, row.call, row.kept)
