"""What a session of causal Wan takes beside cache blocks, by configuration."""

from dataclasses import dataclass

from reverie.models.wan.config import CausalConfig, WanConfig
from reverie.models.wan.input_frames import CAMERA_PICTURES
from reverie.models.wan.network.features import GROUP

DECODER_FEATURES = 2364.5
ENCODER_FEATURES = 1404.0
"""Numbers that the causal convolutions of the Wan 2.1 VAE keep, for each pixel of a picture."""
LATENT_BYTES = 4


@dataclass(frozen=True, slots=True)
class StateSize:
    """Bytes of a session's states.

    Attributes:
        newest: what the state that is worked on takes, features of the VAE left out.
        features: what the VAE keeps in each state that can be gone back to.
        latents: of one block.
    """

    newest: int
    features: int
    latents: int

    @classmethod
    def of(
        cls, config: WanConfig, causal: CausalConfig, pixels: int, cell_px: int, number_bytes: int
    ) -> "StateSize":
        """Compute for pictures of so many pixels, and networks in a type of so many bytes.

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
        # The window, the sink, and a block: as pictures' latents, as a point, and when it is final.
        latents = latent * (causal.local + causal.sink + 3 * causal.block)
        return cls(
            newest=prompt + copied + pushed + made + latents,
            features=round((DECODER_FEATURES + ENCODER_FEATURES) * pixels * number_bytes),
            latents=latent * causal.block,
        )
