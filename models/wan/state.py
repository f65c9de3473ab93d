"""What a session of causal Wan is between two units of work.

Shapes: Z latent channels on a grid h x w, F latent frames of a block.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum, auto

from torch import Tensor

from reverie.models.contract.blocks import BlockId
from reverie.models.contract.controls import MediaInput
from reverie.models.services.adapters import OFF, Mix
from reverie.models.services.guidance.policies import GuidanceDelta
from reverie.models.wan.context import Past
from reverie.models.wan.network.features import FeatureCache
from reverie.models.wan.network.transformer import Prompt


class WanPhase(Enum):
    """What comes next."""

    BEGIN = auto()
    """Nothing was done yet: the prompt is to be read."""
    WARM = auto()
    """Latents of a history that was given go through the decoder, for its features."""
    BLOCK = auto()
    """A chunk is to begin."""
    ENCODE = auto()
    """Pictures were taken; those that are left are to be encoded."""
    DENOISE = auto()
    """A block is in the making."""
    RECACHE = auto()
    """A new prompt was read, or adapters chosen; the window is to be computed under them."""
    DECODE = auto()
    """Latents are final; their pictures are to be made."""
    CONTEXT = auto()
    """The pictures are out; keys and values of the latents are to be written."""


class OnPrompt(IntEnum):
    """What a new prompt does to the block in the making."""

    WAIT = 0
    """The block ends under the old one: what the public loops do."""
    FINISH = 1
    """Its remaining denoise calls hear the new one."""
    RESTART = 2
    """It begins again, from the same noise."""


@dataclass(frozen=True, slots=True)
class LatentFrame:
    """A latent frame that is final.

    Attributes:
        number: counted from the start of the video; its rotary position.
        block: the number of the first frame of the block that it belongs to.
    """

    number: int
    block: int
    clean_Zhw: Tensor


@dataclass(frozen=True, slots=True)
class PendingLatents:
    """A latent frame whose pictures are not made yet.

    Attributes:
        pictures: how many of its pictures are shown; the rest only filled a clip's last group.
        begins: another video begins with it.
    """

    clean_Zhw: Tensor
    pictures: int
    begins: bool = False


@dataclass(frozen=True, slots=True)
class WanState:
    """A session's state; see `WanPhase` for the order of things.

    Attributes:
        frame: latent frames whose keys and values are written, as numbered; the next one's number.
        offset: how many frames more there were than `frame` says, since it was counted anew.
        step: denoise calls that the block has behind it.
        timesteps: of the denoise calls of the block in the making.
        turned: a prompt was read and no unit of a chunk has run since: one comes next, whatever
            else is said meanwhile.
        restarted: the block in the making has begun again once; it will not twice.
        mix: the adapters in force, and how strong they are.
        stale: the cache was written under another mix, and is to be computed anew.
        text: the prompt as the layers read it.
        point_FZhw: the block on its way from noise to latents.
        past: what the block looks back on; gathered once a block.
        window: the newest frames that are written, at most as many as attention sees.
        sink: the first frames of the cache, which never leave it.
        fresh: final frames whose keys and values are not written yet.
        warm: latents of a given history that the decoder has not seen.
        waiting: final latents that are not decoded yet.
        made: pictures of the chunk, 0 to 1, that wait for the others of it.
        decoder: the VAE's features after the last decoded frame; None before the first.
        pictures: what was pushed and is not encoded yet.
        encoder: the VAE's features after the last encoded picture; None when the next one begins a
            video.
        source: encoded pictures that the block in the making is painted over.
        newest: the picture that a camera showed last.
        strength: how much of it is repainted; 1 leaves nothing.
        guidance: how much more than the prompt itself the prompt counts; 1 is no guidance.
        past_guidance: likewise what the block looks back on.
        delta: what a guidance policy keeps from one denoise call of the block to the next.
        blocks: cache blocks, one a latent frame: the sink first, then the newest.
    """

    seed: int
    prompt: str
    on_prompt: OnPrompt = OnPrompt.FINISH
    phase: WanPhase = WanPhase.BEGIN
    frame: int = 0
    offset: int = 0
    step: int = 0
    timesteps: tuple[float, ...] = ()
    turned: bool = False
    restarted: bool = False
    mix: Mix = OFF
    stale: bool = False
    text: Prompt | None = None
    point_FZhw: Tensor | None = None
    past: Past | None = None
    window: tuple[LatentFrame, ...] = ()
    sink: tuple[LatentFrame, ...] = ()
    fresh: tuple[LatentFrame, ...] = ()
    warm: tuple[Tensor, ...] = ()
    waiting: tuple[PendingLatents, ...] = ()
    made: tuple[Tensor, ...] = ()
    decoder: FeatureCache | None = None
    pictures: tuple[MediaInput, ...] = ()
    encoder: FeatureCache | None = None
    source: tuple[Tensor, ...] = ()
    newest: MediaInput | None = None
    strength: float = 1.0
    guidance: float = 1.0
    past_guidance: float = 1.0
    delta: GuidanceDelta | None = None
    blocks: tuple[BlockId, ...] = ()

    @property
    def clip_continues(self) -> bool:
        """Whether the pictures that come next follow on those before; a camera never ends."""
        return self.encoder is not None
