"""What a loaded DIAMOND consists of."""

from dataclasses import dataclass

from reverie.models.contract.seeds import Draw, normal
from reverie.models.diamond.config import GameConfig
from reverie.models.diamond.network.denoiser import Denoiser
from reverie.models.diamond.starts import Start


@dataclass(frozen=True, slots=True)
class DiamondComponents:
    """Networks, the game, what worlds may begin with, and where noise is drawn from."""

    world: Denoiser
    upsampler: Denoiser | None
    game: GameConfig
    starts: tuple[Start, ...]
    draw: Draw = normal
