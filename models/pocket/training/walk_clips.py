"""Clips from the model's own walks: what it made is seen, what it should have made is the aim."""

from typing import Any

import numpy as np
import torch

from reverie.models.pocket.network.codec import PictureCodec
from reverie.models.pocket.training.batches import Batch, draw_levels
from reverie.models.pocket.training.own_walks import WalkGroup
from reverie.models.pocket.training.served_walks import ServedWalks

STREAM = 4  # separates the walks' random numbers from all others
FINISHED_SHARE = 0.9
TURN = 2
STEPS = (2, 3)
"""Denoise steps a frame, as they are served."""


class OwnWalks:
    """Groups of walks that take turns: each advances, and is the source of clips for `TURN` steps.

    Args:
        codec: a trained codec, in float32.
        served: makes the frames.
        seed: of all randomness.
        sizes: number of groups, walks of each, frames of a clip, and frames by which a group
            advances in its turn.
    """

    def __init__(
        self, codec: PictureCodec, served: ServedWalks, seed: int, sizes: tuple[int, int, int, int]
    ) -> None:
        groups, walks, self._frames, self._advance = sizes
        self._seed, self._served = seed, served
        config, vocabulary = served.nets.config.world, served.nets.vocabulary
        self._groups = [
            WalkGroup(codec, config, vocabulary, walks, self._frames) for _ in range(groups)
        ]

    @property
    def error(self) -> float:
        """Mean squared error of the walks' newest frames to the nearest legal ones."""
        return float(np.mean([group.error for group in self._groups]))

    def group(self, step: int) -> WalkGroup:
        """Return the group whose turn it is."""
        return self._groups[step // TURN % len(self._groups)]

    def make(self, step: int) -> Batch:
        """Advance a group, if its turn begins, and return its last frames as clips."""
        group = self.group(step)
        rng = np.random.default_rng([self._seed, STREAM, step])
        if step % TURN == 0 or group.is_new:
            group.advance(self._served, self._advance, int(rng.choice(STEPS)), rng, step)
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        history = group.history
        device, walks = history.made_BFZhw.device, len(history.made_BFZhw)
        clean_BFZhw = history.aims_BFZhw[:, 1:]
        fresh_B = torch.zeros(walks, dtype=torch.bool)
        level_BF = draw_levels(fresh_B, self._frames, generator, FINISHED_SHARE)
        biome_T, hour_T = history.names_BTN.flatten(0, 1).unbind(1)
        rows = 2 * torch.arange(walks, device=device)[:, None]
        return Batch(
            clean_BFZhw=clean_BFZhw,
            seen_BFZhw=history.made_BFZhw[:, 1:],
            previous_BFZhw=history.made_BFZhw[:, :-1],
            noise_BFZhw=history.noise_BFZhw[:, 1:],
            level_BF=level_BF.to(device),
            action_BF=history.action_BF[:, 1:],
            changes_BF=history.text_BF.diff(dim=1) > 0,
            fresh_B=fresh_B.to(device),
            ids_TL=history.ids_BTL.flatten(0, 1),
            text_BF=rows + history.text_BF[:, 1:],
            biome_T=biome_T.clone(),
            hour_T=hour_T.clone(),
        )

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next frames depend on."""
        return {"groups": [group.state_dict() for group in self._groups]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        for group, content in zip(self._groups, state["groups"], strict=True):
            group.load_state_dict(content)
