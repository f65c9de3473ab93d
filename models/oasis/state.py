"""The state of an Oasis session between two units of work.

Shapes: Z latent channels on a grid h x w, E numbers of an action row.
"""

from dataclasses import dataclass
from enum import Enum, auto

from torch import Tensor

from reverie.models.contract.blocks import BlockId


class OasisPhase(Enum):
    """The next unit."""

    BEGIN = auto()
    """Encode the start picture."""
    DECODE = auto()
    """Decode the newest final frame and put it out."""
    CONTEXT = auto()
    """Add it to the past."""
    FRAME = auto()
    """Begin a frame."""
    DENOISE = auto()
    """Continue the frame in progress."""


@dataclass(frozen=True, slots=True)
class ContextFrame:
    """A frame of the window, and the action that led to it."""

    latents_Zhw: Tensor
    action_E: Tensor


@dataclass(frozen=True, slots=True)
class OasisState:
    """A session's state; see `OasisPhase` for the order of units.

    Attributes:
        frame: the number of final frames.
        step: denoise calls that the frame in progress has had.
        point_Zhw: the frame in progress.
        action_E: the action that leads to it.
        window: the frames that it attends to, oldest first.
        blocks: the temporal keys and values of each frame of the window.
        action_guidance: guidance scale of the action; 1 is no guidance.
        slid: whether frames have left the window, so that the rest must be recomputed.
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
