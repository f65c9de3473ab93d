"""The Wan VAE, a latent frame at a time, with feature caches that belong to a session.

diffusers' module keeps its caches on itself, which would mix sessions. Here they are arguments and
results. The first latent frame of a video is one picture, each later one is four.

Shapes: Z latent channels on a grid h x w, F pictures of H x W pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from diffusers.models.autoencoders.autoencoder_kl_wan import AutoencoderKLWan, WanCausalConv3d
from torch import Tensor, nn

from reverie.models.wan.network.features import FIRST_GROUP, GROUP, FeatureCache


@dataclass(frozen=True, slots=True)
class Scale:
    """What latents are normalised with, [Z, 1, 1] each."""

    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, vae: AutoencoderKLWan, device: torch.device) -> "Scale":
        """Read the constants of the VAE's configuration."""
        mean, deviation = (
            torch.tensor(values, device=device)[:, None, None]
            for values in (vae.config["latents_mean"], vae.config["latents_std"])
        )
        return cls(mean, deviation)


class StreamingVae:
    """Decodes and encodes for many sessions; holds nothing of any of them."""

    def __init__(self, vae: AutoencoderKLWan) -> None:
        """Use a loaded VAE; its own caches and tiling stay untouched."""
        self._vae = vae
        weight = next(vae.parameters())
        self._device, self._dtype = weight.device, weight.dtype
        self._scale = Scale.of(vae, weight.device)
        self._decoder_slots = _count_convolutions(vae.decoder)
        self._encoder_slots = _count_convolutions(vae.encoder)

    @torch.no_grad()
    def decode(
        self, latents_BZhw: Tensor, cache: FeatureCache | None
    ) -> tuple[Tensor, FeatureCache]:
        """Decode the next latent frame of each of B videos.

        Args:
            latents_BZhw: normalised.
            cache: after the latent frame before; None for the first of a video.

        Returns:
            Pictures [B, F, H, W, 3], -1 to 1 and not clamped, float32; and the next cache.
        """
        latents = latents_BZhw.to(self._device).float() * self._scale.deviation + self._scale.mean
        features: list[Tensor | str | None] = list(cache or (None,) * self._decoder_slots)
        narrow = self._vae.post_quant_conv(latents[:, :, None].to(self._dtype))
        pictures = self._vae.decoder(
            narrow, feat_cache=features, feat_idx=[0], first_chunk=cache is None
        )
        return pictures.permute(0, 2, 3, 4, 1).float(), tuple(features)

    @torch.no_grad()
    def encode(
        self, pictures_BFHWC: Tensor, cache: FeatureCache | None
    ) -> tuple[Tensor, FeatureCache]:
        """Encode the pictures of the next latent frame of each of B videos.

        Args:
            pictures_BFHWC: -1 to 1; `FIRST_GROUP` for the first latent frame, then `GROUP`.
            cache: after the latent frame before; None for the first of a video.

        Returns:
            The means [B, Z, h, w], normalised, float32; and the next cache.

        Raises:
            ValueError: it is another number of pictures.
        """
        due = FIRST_GROUP if cache is None else GROUP
        if pictures_BFHWC.shape[1] != due:
            text = f"{due} pictures make this latent frame, not {pictures_BFHWC.shape[1]}"
            raise ValueError(text)
        features: list[Tensor | str | None] = list(cache or (None,) * self._encoder_slots)
        pixels = pictures_BFHWC.to(self._device, self._dtype).permute(0, 4, 1, 2, 3)
        wide = self._vae.encoder(pixels, feat_cache=features, feat_idx=[0])
        means_BZhw = self._vae.quant_conv(wide)[:, :, 0].chunk(2, dim=1)[0].float()
        return (means_BZhw - self._scale.mean) / self._scale.deviation, tuple(features)


def grouped(count: int) -> Sequence[slice]:
    """Return which of `count` pictures make each latent frame; what is over at the end is left."""
    starts = range(FIRST_GROUP, count - GROUP + 1, GROUP)
    return (slice(0, FIRST_GROUP), *(slice(start, start + GROUP) for start in starts))


def _count_convolutions(part: nn.Module) -> int:
    return sum(isinstance(module, WanCausalConv3d) for module in part.modules())
