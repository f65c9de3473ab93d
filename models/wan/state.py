"""The state of a causal Wan session between two units of work.

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
    """The next unit."""

    BEGIN = auto()
    """Encode the first prompt."""
    WARM = auto()
    """Run the decoder on latents of a restored history, for its features."""
    BLOCK = auto()
    """Begin a chunk."""
    ENCODE = auto()
    """Encode the remaining pictures that were taken."""
    DENOISE = auto()
    """Continue the block in progress."""
    RECACHE = auto()
    """Recompute the window under a new prompt or other adapters."""
    DECODE = auto()
    """Decode final latents to pictures."""
    CONTEXT = auto()
    """Write the keys and values of latents whose pictures were put out."""


class OnPrompt(IntEnum):
    """What a new prompt does to the block in progress."""

    WAIT = 0
    """The block ends under the old one, as in the public loops."""
    FINISH = 1
    """Its remaining denoise calls use the new one."""
    RESTART = 2
    """The block begins again, from the same noise."""


@dataclass(frozen=True, slots=True)
class LatentFrame:
    """A latent frame that is final.

    Attributes:
        number: counted from the start of the video; its rotary position.
        block: the number of the first frame of its block.
    """

    number: int
    block: int
    clean_Zhw: Tensor


@dataclass(frozen=True, slots=True)
class PendingLatents:
    """A latent frame that is not decoded yet.

    Attributes:
        pictures: how many of its pictures are shown; the rest fill a clip's last group.
        begins: whether another video begins with it.
    """

    clean_Zhw: Tensor
    pictures: int
    begins: bool = False


@dataclass(frozen=True, slots=True)
class WanState:
    """A session's state; see `WanPhase` for the order of units.

    Attributes:
        frame: the number of the next latent frame; keys and values of earlier ones are written.
        offset: how many frames were before number 0, since the frames were renumbered.
        step: denoise calls that the block in progress has had.
        timesteps: of all denoise calls of the block in progress.
        turned: whether a prompt was encoded and no unit of a chunk has run since; one runs next,
            even if another prompt comes.
        restarted: whether the block in progress has restarted; it does so at most once.
        mix: the active adapters and their strengths.
        stale: whether the cache was written under another mix and must be recomputed.
        text: the prompt as the layers read it.
        point_FZhw: the block in progress, between noise and latents.
        past: the window of the block in progress, read once a block.
        window: the newest written frames, at most as many as attention sees.
        sink: the first frames of the cache, which never leave it.
        fresh: final frames whose keys and values are not written yet.
        warm: latents of a restored history that the decoder has not seen.
        waiting: final latents that are not decoded yet.
        made: decoded pictures of the chunk, 0 to 1, which are put out together.
        decoder: the VAE's features after the last decoded frame; None before the first.
        pictures: pushed pictures that are not encoded yet.
        encoder: the VAE's features after the last encoded picture; None when the next one begins a
            video.
        source: encoded pictures that the block in progress repaints.
        newest: the newest picture of a camera.
        strength: of the repainting; 1 keeps nothing of the pictures.
        guidance: guidance scale of the prompt; 1 is no guidance.
        past_guidance: guidance scale of the past; 1 is no guidance.
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
        """Whether the next pictures continue the video before them; a camera never ends."""
        return self.encoder is not None
