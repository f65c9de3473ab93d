"""The state of a DIAMOND session between two units of work.

Shapes: C channels, H x W pixels; pictures are -1 to 1.
"""

from dataclasses import dataclass
from enum import Enum, auto

from torch import Tensor

from reverie.models.contract.blocks import BlockId
from reverie.models.diamond.sampler import SamplingState


class DiamondPhase(Enum):
    """The next unit."""

    BEGIN = auto()
    """Show the start picture."""
    FRAME = auto()
    """Begin a picture."""
    DENOISE = auto()
    """Continue the picture in progress."""
    UPSAMPLE = auto()
    """Upsample it."""
    SHOW = auto()
    """Put it out."""


@dataclass(frozen=True, slots=True)
class DiamondState:
    """A session's state; there is no cache, the past pictures are all of its memory.

    Attributes:
        frame: the number of final pictures.
        pictures: the past, oldest first.
        actions: between each picture and the next; the newest leads to the picture in progress.
        drawing: the picture in progress.
        enlarging: the upsampled picture in progress.
        shown_CHW: the newest picture, in the size that is shown.
        fine: whether the slower samplers make the picture.
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
        """None: there is no cache."""
        return ()
