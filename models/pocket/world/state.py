"""The state of a pocket session: an immutable value that refers to cache blocks."""

from dataclasses import dataclass
from enum import StrEnum

from torch import Tensor

from reverie.models.contract.blocks import BlockId
from reverie.models.pocket.simulator.biomes import Action, Biome, Hour
from reverie.models.pocket.simulator.walker import Facing, stance_of
from reverie.models.pocket.world.past_rows import PocketPastRow
from reverie.models.services.guidance.policies import GuidanceDelta


class PocketPhase(StrEnum):
    """Which unit of work comes next; the value is the unit's kind."""

    BEGIN = "begin"
    """Encode the prompt and choose where the world starts."""
    FIRST_FRAME = "first_frame"
    """Encode the one picture that the simulator gives."""
    CHUNK = "chunk"
    """A new frame: take the controls, then denoise."""
    DENOISE = "denoise"
    DECODE = "decode"
    CONTEXT = "context"
    """Write finished frames into the cache, off the viewer's path."""


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """A finished frame that the model still sees.

    Attributes:
        clean_Zhw: its latents.
        previous_Zhw: those of the frame before it, which was part of its input.
        action: what the walker did in it.
        text_T: the prompt that it was made under.
        facing: which way he looked in it; None when unknown.
    """

    clean_Zhw: Tensor
    previous_Zhw: Tensor
    action: Action
    text_T: Tensor
    facing: Facing | None = None

    @property
    def stance(self) -> int:
        """What the world model is told of the walker."""
        return stance_of(self.action, self.facing)


@dataclass(frozen=True, slots=True)
class PocketState:
    """The state of one session.

    Attributes:
        seed: root of all its randomness.
        prompt: the prompt in effect.
        biome: the one named last, or drawn at the start; None before the first unit.
        hour: the same for the hour.
        steps: denoise steps a frame.
        guidance: the guidance scale of the prompt; 1 is no guidance.
        strength: the distance from a given picture at which a frame begins; 1 is pure noise.
        phase: the next unit of work.
        frame: the number of the frame in progress, counted from the start; numbers its noise.
        step: denoise steps that it has had.
        action: what the walker does in it.
        facing: which way he looks after it; None when unknown.
        text_T: embedding of the prompt; None before the first unit.
        point_Zhw: the frame in progress, between noise and latents.
        past: the window as attention reads it, while a frame is in progress.
        delta: what a guidance policy keeps from one denoise step of the frame to the next.
        window: the frames that the next one sees, oldest first. Longer than `blocks` while frames
            wait to be written to the cache.
        blocks: cache blocks of the window, oldest first.
    """

    seed: int
    prompt: str
    steps: int
    guidance: float = 1.0
    strength: float = 1.0
    biome: Biome | None = None
    hour: Hour | None = None
    phase: PocketPhase = PocketPhase.BEGIN
    frame: int = 0
    step: int = 0
    action: Action = Action.WAIT
    facing: Facing | None = None
    text_T: Tensor | None = None
    point_Zhw: Tensor | None = None
    past: PocketPastRow | None = None
    delta: GuidanceDelta | None = None
    window: tuple[WindowFrame, ...] = ()
    blocks: tuple[BlockId, ...] = ()

    @property
    def stance(self) -> int:
        """What the world model is told of the walker."""
        return stance_of(self.action, self.facing)
