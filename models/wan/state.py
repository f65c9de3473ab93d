"""What a session of causal Wan is between two units of work.

Shapes: Z latent channels on a grid h x w, F latent frames of a block.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum, auto

from torch import Tensor

from reverie.models.blocks import BlockId
from reverie.models.wan.block import KeysAndValues
from reverie.models.wan.features import FeatureCache
from reverie.models.wan.transformer import Prompt


class Phase(Enum):
    """What comes next."""

    BEGIN = auto()
    """Nothing was done yet: the prompt is to be read."""
    GIVEN = auto()
    """Latents that were given wait to be decoded and written to the cache."""
    BLOCK = auto()
    """A block is to begin."""
    DENOISE = auto()
    """A block is in the making."""
    RECACHE = auto()
    """A new prompt was read; the window is to be computed under it."""
    DECODE = auto()
    """The block is final; its pictures are to be made."""
    CONTEXT = auto()
    """Its pictures are out; its keys and values are to be written."""


class OnPrompt(IntEnum):
    """What a new prompt does to the block in the making."""

    WAIT = 0
    """The block ends under the old one: what the public loops do."""
    FINISH = 1
    """Its remaining denoise calls hear the new one."""
    RESTART = 2
    """It begins again, from the same noise."""


@dataclass(frozen=True, slots=True)
class WanState:
    """A session's state; see `Phase` for the order of things.

    Attributes:
        frame: latent frames that are final; those of the block in the making follow.
        step: denoise calls that the block has behind it.
        turned: a prompt was read and no denoise call has run since: one comes next, whatever else
            is said meanwhile.
        restarted: the block in the making has begun again once; it will not twice.
        text: the prompt as the layers read it.
        point_FZhw: the block on its way from noise to latents.
        past: what the block looks back on, for each layer; gathered once a block.
        seen: the cache blocks of `past`, oldest first.
        window: clean latents of the newest frames, at most as many as attention sees.
        given: latents that are to become history, oldest first.
        waiting: final latents that are not decoded yet.
        made: pictures of the block, 0 to 1, that wait for the others of it.
        fresh: final latents of the block whose keys and values are not written yet.
        decoder: the VAE's features after the last decoded frame; None before the first.
        blocks: cache blocks, one a latent frame: the sink first, then the newest.
    """

    seed: int
    prompt: str
    on_prompt: OnPrompt = OnPrompt.FINISH
    phase: Phase = Phase.BEGIN
    frame: int = 0
    step: int = 0
    turned: bool = False
    restarted: bool = False
    text: Prompt | None = None
    point_FZhw: Tensor | None = None
    past: tuple[KeysAndValues, ...] | None = None
    seen: tuple[BlockId, ...] = ()
    window: tuple[Tensor, ...] = ()
    given: tuple[Tensor, ...] = ()
    waiting: tuple[Tensor, ...] = ()
    made: tuple[Tensor, ...] = ()
    fresh: tuple[Tensor, ...] = ()
    decoder: FeatureCache | None = None
    blocks: tuple[BlockId, ...] = ()
