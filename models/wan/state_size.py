"""The memory of a causal Wan session besides cache blocks, by configuration."""

from dataclasses import dataclass

from reverie.models.wan.config import CausalConfig, WanConfig
from reverie.models.wan.input_frames import CAMERA_PICTURES
from reverie.models.wan.network.features import GROUP

DECODER_FEATURES = 2364.5
ENCODER_FEATURES = 1404.0
"""Numbers that the causal convolutions of the Wan 2.1 VAE keep, per pixel of a picture."""
LATENT_BYTES = 4


@dataclass(frozen=True, slots=True)
class StateSize:
    """Bytes of a session's states.

    Attributes:
        newest: of the newest state, without features of the VAE.
        features: of the VAE, in each state that can be restored.
        latents: of one block.
    """

    newest: int
    features: int
    latents: int

    @classmethod
    def of(
        cls, config: WanConfig, causal: CausalConfig, pixels: int, cell_px: int, number_bytes: int
    ) -> "StateSize":
        """Compute the sizes for a number of pixels and of bytes a number.

        Args:
            pixels: of one picture.
            cell_px: along one side of a latent cell.
            number_bytes: 2 for half precision.
        """
        cells = pixels // cell_px**2
        latent = config.in_dim * cells * LATENT_BYTES
        prompt = 2 * config.num_layers * config.text_len * config.dim * number_bytes
        tokens = cells // config.patch**2
        copied = 2 * config.num_layers * tokens * config.dim * number_bytes * causal.local
        pushed = CAMERA_PICTURES * pixels * 3
        made = causal.block * GROUP * pixels * 3 * 4
        # The window, the sink, and three times a block: encoded pictures, in progress, and final.
        latents = latent * (causal.local + causal.sink + 3 * causal.block)
        return cls(
            newest=prompt + copied + pushed + made + latents,
            features=round((DECODER_FEATURES + ENCODER_FEATURES) * pixels * number_bytes),
            latents=latent * causal.block,
        )
