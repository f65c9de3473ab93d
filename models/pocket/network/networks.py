"""The four networks together, ready to serve.

Shapes: B sessions, Z latent channels on a grid h x w, H = W = 128 pixels, T size of a text
embedding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from reverie.kernels.attention import AUTO
from reverie.models.pocket.config import PocketConfig
from reverie.models.pocket.narration.vocabulary import NarrationVocabulary
from reverie.models.pocket.network.codec import PictureCodec, frames_to_tensor, tensor_to_frames
from reverie.models.pocket.network.narrator import Narrator
from reverie.models.pocket.network.text_encoder import TextEncoder, pad_ids
from reverie.models.pocket.network.vocabulary import TokenizedPrompt, Vocabulary
from reverie.models.pocket.network.world_model import WorldModel


@dataclass(frozen=True, slots=True)
class PocketNets:
    """Codec, text encoder, world model and narrator, with vocabularies, sizes and version.

    Attributes:
        codec: frames to latents and back.
        text: prompts to vectors; always float32.
        world: the next frame's latents.
        narrator: describes in words what the world model sees.
        vocabulary: the words behind the text encoder's ids.
        narration: the tokens behind the narrator's ids.
        config: sizes.
        version: hash of the weights, part of every cache key.
        device: where the networks are.
        dtype: precision of codec, world model and narrator.
    """

    codec: PictureCodec
    text: TextEncoder
    world: WorldModel
    narrator: Narrator
    vocabulary: Vocabulary
    narration: NarrationVocabulary
    config: PocketConfig
    version: str
    device: torch.device
    dtype: torch.dtype

    @torch.inference_mode()
    def embed(self, prompts: Sequence[TokenizedPrompt]) -> Tensor:
        """Return text embeddings [B, T], float32; under an empty prompt the world stays as is."""
        ids_BL = pad_ids([prompt.ids for prompt in prompts]).to(self.device)
        embedding: Tensor = self.text(ids_BL)
        return embedding

    @torch.inference_mode()
    def encode(self, frames_BHWC: Tensor) -> Tensor:
        """Return latents [B, Z, h, w], float32, of uint8 frames [B, H, W, 3]."""
        colours_BCHW = frames_to_tensor(frames_BHWC.to(self.device)).to(self.dtype)
        return self.codec.encode(colours_BCHW)

    @torch.inference_mode()
    def decode(self, latents_BZhw: Tensor) -> Tensor:
        """Return uint8 frames [B, H, W, 3] of latents."""
        colours_BCHW = self.codec.decode(latents_BZhw.to(self.device, self.dtype))
        return tensor_to_frames(colours_BCHW)


def fast_dtype(device: torch.device) -> torch.dtype:
    """Return bfloat16 where the device multiplies it fast, else float32."""
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    return torch.bfloat16 if torch.cpu._is_avx512_bf16_supported() else torch.float32


def fast_attention(device: torch.device, dtype: torch.dtype) -> str:
    """Return the name of the fastest attention of one frame over a window of a few frames."""
    few_keys_on_a_cpu = device.type == "cpu" and dtype is torch.bfloat16
    # The tile units of some processors make the fused operation the faster one there, too.
    return "products" if few_keys_on_a_cpu and not torch.cpu._is_amx_tile_supported() else AUTO
