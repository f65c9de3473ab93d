"""What a session of DIAMOND is between two units of work.

Shapes: C channels, H x W pixels; pictures are -1 to 1.
"""

from dataclasses import dataclass
from enum import Enum, auto

from torch import Tensor

from reverie.models.contract.blocks import BlockId
from reverie.models.diamond.sampler import SamplingState


class DiamondPhase(Enum):
    """What comes next."""

    BEGIN = auto()
    """The start picture is to be shown."""
    FRAME = auto()
    """A picture is to begin."""
    DENOISE = auto()
    """A picture is in the making."""
    UPSAMPLE = auto()
    """It is to be made large."""
    SHOW = auto()
    """It is to go out."""


@dataclass(frozen=True, slots=True)
class DiamondState:
    """A session's state; there is no cache: pictures are all the memory there is.

    Attributes:
        frame: pictures that are final.
        pictures: the past, oldest first.
        actions: what was done before each picture that follows them; the newest leads to the one
            in the making.
        drawing: the picture in the making.
        enlarging: the same, as the upsampler makes it.
        shown_CHW: the newest picture in the size that a person sees.
        fine: the picture in the making, or the newest, is made by the slower samplers.
    """

    seed: int
    pictures: tuple[Tensor, ...]
    actions: tuple[Tensor, ...]
    shown_CHW: Tensor
    phase: DiamondPhase = DiamondPhase.BEGIN
    frame: int = 0
    drawing: SamplingState | None = None
    enlarging: SamplingState | None = None
    fine: bool = False

    @property
    def blocks(self) -> tuple[BlockId, ...]:
        """There are none."""
        return ()
