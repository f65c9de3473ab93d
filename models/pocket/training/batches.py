"""One batch of the world model's training: tensors, a pure function of seed and step.

Shapes: B clips, F frames, Z channels on a grid h x w, L words of a text.
"""

from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reverie.models.pocket.network.codec import PictureCodec, frames_to_tensor
from reverie.models.pocket.network.sampler import LEVEL_SHIFT
from reverie.models.pocket.network.text_encoder import pad_ids
from reverie.models.pocket.network.vocabulary import PAD, UNKNOWN, Vocabulary
from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.training.clips import Clips, make_clips
from reverie.models.pocket.training.corruption import Damage
from reverie.models.pocket.training.noise_pairing import pair_all

STREAM = 2  # separates the world model's random numbers from the codec's
FORGOTTEN_WORDS = 0.04
LOW_LEVEL = 0.12


@dataclass(frozen=True, slots=True)
class Batch:
    """The tensors of one training step.

    Attributes:
        clean_BFZhw: latents to predict.
        seen_BFZhw: the same frames as later frames see them in the window: with errors.
        previous_BFZhw: the frame before, as it is seen; zeros before a session's first frame.
        noise_BFZhw: standard normal; says which land comes into view (`noise_pairing.py`).
        level_BF: noise levels.
        action_BF: the stance behind the frame.
        changes_BF: whether the prompt changes with this frame.
        fresh_B: whether the first frame starts a session: it is given, not predicted.
        ids_TL: word ids of all texts, two for each clip.
        text_BF: which row of `ids_TL` is in effect.
        biome_T: the biome that the text names, `len(Biome)` for none.
        hour_T: the hour that the text names, `len(Hour)` for none.
    """

    clean_BFZhw: Tensor
    seen_BFZhw: Tensor
    previous_BFZhw: Tensor
    noise_BFZhw: Tensor
    level_BF: Tensor
    action_BF: Tensor
    changes_BF: Tensor
    fresh_B: Tensor
    ids_TL: Tensor
    text_BF: Tensor
    biome_T: Tensor
    hour_T: Tensor


def draw_levels(
    fresh_B: Tensor, frames: int, generator: torch.Generator, finished: float = 0.5
) -> Tensor:
    """Draw a noise level for every frame: [B, F].

    A third is pure noise, a fifth nearly clean, the rest between them, mostly high, because high
    levels decide what a cell shows. A share `finished` of the clips have a nearly clean past, as in
    serving. The first frame of a session is given, nearly clean.
    """
    shape = (len(fresh_B), frames)
    kind = torch.rand(shape, generator=generator)
    low = LOW_LEVEL * (1.4 * torch.rand(shape, generator=generator) - 0.4).clamp(min=0)
    even = torch.rand(shape, generator=generator)
    level = LEVEL_SHIFT * even / (1 + (LEVEL_SHIFT - 1) * even)
    level = torch.where(kind < 0.33, torch.ones(shape), torch.where(kind > 0.8, low, level))
    past_ends = torch.randint(0, frames, (len(fresh_B), 1), generator=generator)
    past_ends = past_ends * (torch.rand(len(fresh_B), 1, generator=generator) < finished)
    past_ends = torch.maximum(past_ends, fresh_B[:, None].long())
    return torch.where(torch.arange(frames) < past_ends, low, level)


def join(first: Batch, second: Batch) -> Batch:
    """Put the clips of two batches into one."""
    joined = {
        field.name: torch.cat([getattr(first, field.name), getattr(second, field.name)])
        for field in fields(Batch)
    }
    joined["text_BF"] = torch.cat([first.text_BF, second.text_BF + len(first.ids_TL)])
    return Batch(**joined)


class BatchMaker:
    """Make batches from the simulator, through a trained codec."""

    def __init__(
        self, codec: PictureCodec, vocabulary: Vocabulary, seed: int, clips: int, frames: int
    ) -> None:
        self.codec, self.vocabulary, self.seed = codec, vocabulary, seed
        self.clips, self.frames = clips, frames

    def make(self, step: int) -> Batch:
        """Return the batch of a step, on the codec's device."""
        rng = np.random.default_rng([self.seed, STREAM, step])
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        device = self.codec.latent_mean.device
        clips = make_clips(rng, self.clips, self.frames)
        latents_BFZhw, tinted_BFZhw = self._encode(clips.frames), self._encode(clips.tinted)
        fresh_B = torch.from_numpy(clips.fresh)
        clean_BFZhw = latents_BFZhw[:, 1:]
        captions = [caption for pair in clips.captions for caption in pair]
        named_B = torch.tensor(
            [all(None not in (c.biome, c.hour) for c in pair) for pair in clips.captions]
        )
        damaged_BFZhw = Damage(generator)(latents_BFZhw, tinted_BFZhw, named_B)
        previous_BFZhw = damaged_BFZhw[:, :-1].clone()
        previous_BFZhw[fresh_B.to(device), 0] = 0
        text_BF = 2 * torch.arange(self.clips)[:, None] + torch.from_numpy(clips.caption_index)
        changes_BF = np.diff(clips.caption_index, axis=1, prepend=0) > 0
        biomes = [len(Biome) if c.biome is None else int(c.biome) for c in captions]
        hours = [len(Hour) if c.hour is None else int(c.hour) for c in captions]
        return Batch(
            clean_BFZhw=clean_BFZhw,
            seen_BFZhw=damaged_BFZhw[:, 1:],
            previous_BFZhw=previous_BFZhw,
            noise_BFZhw=self._noise(clips, clean_BFZhw.shape, generator, rng).to(device),
            level_BF=draw_levels(fresh_B, self.frames, generator).to(device),
            action_BF=torch.from_numpy(clips.stances).to(device),
            changes_BF=torch.from_numpy(changes_BF).to(device),
            fresh_B=fresh_B.to(device),
            ids_TL=self._ids([c.text for c in captions], generator).to(device),
            text_BF=text_BF.to(device),
            biome_T=torch.tensor(biomes).to(device),
            hour_T=torch.tensor(hours).to(device),
        )

    def _noise(
        self, clips: Clips, shape: torch.Size, generator: torch.Generator, rng: np.random.Generator
    ) -> Tensor:
        noise_BFZhw = torch.randn(shape, generator=generator)
        pair_all(noise_BFZhw.numpy(), clips.actions, clips.places, clips.tiles, rng)
        return noise_BFZhw

    @torch.no_grad()
    def _encode(self, frames_BFHWC: NDArray[np.uint8]) -> Tensor:
        pictures = torch.from_numpy(frames_BFHWC).to(self.codec.latent_mean.device)
        latents = self.codec.encode(frames_to_tensor(pictures.flatten(0, 1)))
        return latents.view(*pictures.shape[:2], *latents.shape[1:])

    def _ids(self, texts: list[str], generator: torch.Generator) -> Tensor:
        ids_TL = pad_ids([self.vocabulary.encode(text).ids for text in texts])
        forgotten = torch.rand(ids_TL.shape, generator=generator) < FORGOTTEN_WORDS
        return torch.where(forgotten & (ids_TL != PAD), UNKNOWN, ids_TL)
