"""Guidance by the action: increases the effect of keys and mouse on the next frame.

The branch without the action has an idle action row; both branches attend to the same past.
"""

import torch
from torch import Tensor

from reverie.models.oasis.network.transformer import OasisTransformer
from reverie.models.services.guidance.policies import (
    Branch,
    CFGPolicy,
    CombineSpace,
    Condition,
    GuidedCall,
    NoGuidance,
    PerModalityGuidance,
    guide,
)

SPACE = CombineSpace.VELOCITY
WEIGHT = "action_guidance"
"""The parameter for the guidance scale; 1 is no guidance."""


def policy_of(weight: float) -> CFGPolicy:
    """Return the guidance policy for a scale."""
    return (
        NoGuidance(SPACE)
        if weight == 1
        else PerModalityGuidance(((Condition.ACTION, weight),), SPACE)
    )


def guided_velocity(
    transformer: OasisTransformer,
    x_Zhw: Tensor,
    level: int,
    action_E: Tensor,
    past_F2LNAd: Tensor,
    policy: CFGPolicy,
    call: GuidedCall,
) -> Tensor:
    """Predict the velocity [Z, h, w] of one frame, in one call of the transformer.

    Args:
        past_F2LNAd: `cached_BF2LNAd` of the frames before, oldest first, without its B.
    """

    def predict(branches: tuple[Branch, ...]) -> Tensor:
        idle_E = torch.zeros_like(action_E)
        actions = [idle_E if Condition.ACTION in each.without else action_E for each in branches]
        rows = len(branches)
        output = transformer(
            x_Zhw[None, None].expand(rows, -1, -1, -1, -1),
            torch.full((rows, 1), level, device=x_Zhw.device),
            torch.stack(actions)[:, None],
            past_F2LNAd[None].expand(rows, *past_F2LNAd.shape),
        )
        velocities: Tensor = output.v_BFZhw[:, 0].float()
        return velocities

    return guide(policy, predict, call).prediction[0]
