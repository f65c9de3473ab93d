"""What a session of Oasis is between two units of work.

Shapes: Z latent channels on a grid h x w, E numbers of an action row.
"""

from dataclasses import dataclass
from enum import Enum, auto

from torch import Tensor

from reverie.models.contract.blocks import BlockId


class OasisPhase(Enum):
    """What comes next."""

    BEGIN = auto()
    """The start picture is to be encoded."""
    DECODE = auto()
    """The newest frame is final, and to be shown."""
    CONTEXT = auto()
    """It is to become part of the past."""
    FRAME = auto()
    """A frame is to begin."""
    DENOISE = auto()
    """A frame is in the making."""


@dataclass(frozen=True, slots=True)
class ContextFrame:
    """A frame of the window, and the action that led to it."""

    latents_Zhw: Tensor
    action_E: Tensor


@dataclass(frozen=True, slots=True)
class OasisState:
    """A session's state; see `OasisPhase` for the order of things.

    Attributes:
        frame: frames that are final.
        step: denoise calls that the frame in the making has behind it.
        point_Zhw: the frame in the making.
        action_E: what leads to it.
        window: what it will see, oldest first.
        blocks: for each frame of the window its temporal keys and values.
        action_guidance: how much more than itself the action counts; 1 is no guidance.
        slid: frames have left the window, so that those which remain must be computed anew.
    """

    seed: int
    phase: OasisPhase = OasisPhase.BEGIN
    frame: int = 0
    step: int = 0
    point_Zhw: Tensor | None = None
    action_E: Tensor | None = None
    window: tuple[ContextFrame, ...] = ()
    blocks: tuple[BlockId, ...] = ()
    slid: bool = False
    action_guidance: float = 1.0
