"""What a loaded Oasis consists of."""

from dataclasses import dataclass

from torch import Tensor

from reverie.models.contract.seeds import Draw, normal
from reverie.models.oasis.network.transformer import OasisTransformer
from reverie.models.oasis.network.vae import OasisVae
from reverie.models.oasis.sampler import Ddim


@dataclass(frozen=True, slots=True)
class OasisComponents:
    """Networks, schedule, pictures to begin with ([S, 3, H, W] in 0..1), and a source of noise."""

    transformer: OasisTransformer
    vae: OasisVae
    ddim: Ddim
    starts: Tensor
    draw: Draw = normal
