"""What a loaded causal Wan consists of."""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from reverie.models.services.adapters import NO_ADAPTERS, Adapters
from reverie.models.wan.config import CausalConfig
from reverie.models.wan.network.features import FeatureCache
from reverie.models.wan.network.transformer import WanTransformer
from reverie.models.wan.noise import Noise


class PromptEncoder(Protocol):
    """Encodes a prompt to the rows that the transformer reads."""

    def encode(self, prompt: str) -> Tensor:
        """Return [rows, text_dim], without padding."""


class LatentDecoder(Protocol):
    """Decodes one latent frame of each of B videos to pictures."""

    def decode(
        self, latents_BZhw: Tensor, cache: FeatureCache | None
    ) -> tuple[Tensor, FeatureCache]:
        """Return pictures [B, F, H, W, 3] in -1..1 and the next cache; see `StreamingVae.decode`.

        The tensors of a cache have a row for each video, so that caches can be stacked and split.
        """


class LatentEncoder(Protocol):
    """Encodes the pictures of one latent frame of each of B videos."""

    def encode(
        self, pictures_BFHWC: Tensor, cache: FeatureCache | None
    ) -> tuple[Tensor, FeatureCache]:
        """Return latents [B, Z, h, w] and the next cache; see `StreamingVae.encode`."""


@dataclass(frozen=True, slots=True)
class WanComponents:
    """The networks and the configuration of a loaded causal Wan.

    Attributes:
        grid: rows and columns of the latents.
        adapters: the LoRAs that sessions can choose.
    """

    transformer: WanTransformer
    decoder: LatentDecoder
    encoder: LatentEncoder
    text: PromptEncoder
    causal: CausalConfig
    noise: Noise
    grid: tuple[int, int]
    adapters: Adapters = NO_ADAPTERS
