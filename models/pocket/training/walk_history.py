"""The state of the model's own walks: their last frames, and where they are.

Shapes: B walks of a group, F frames of a clip, Z channels on a grid h x w, L words of a text.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reverie.models.pocket.config import WorldConfig
from reverie.models.pocket.network.vocabulary import MAX_TOKENS
from reverie.models.pocket.simulator.simulator import WorldState
from reverie.models.pocket.training.land_map import LandMap


@dataclass(slots=True)
class WalkHistory:
    """The last F + 1 frames of B walks, oldest first; the first is only a previous frame.

    Attributes:
        made_BFZhw: what the model made.
        aims_BFZhw: what it should have made.
        noise_BFZhw: the noise that it started from.
        action_BF: the stance behind each frame.
        text_BF: which of the two texts was in effect.
        ids_BTL: word ids of the text before and the text now.
        names_BTN: biome and hour that a text names, as in `Batch`.
    """

    made_BFZhw: Tensor
    aims_BFZhw: Tensor
    noise_BFZhw: Tensor
    action_BF: Tensor
    text_BF: Tensor
    ids_BTL: Tensor
    names_BTN: Tensor


@dataclass(slots=True)
class WalkProgress:
    """The state of B walks.

    Attributes:
        state: place, facing, clock, requested biome and hour.
        land: the tiles in view.
        left: remaining frames.
        settled: frames since the prompt changed.
        habit: probability that the last action is repeated.
    """

    state: WorldState
    land: LandMap
    left: NDArray[np.int64]
    settled: NDArray[np.int64]
    habit: NDArray[np.float64]


def empty_history(
    config: WorldConfig, walks: int, frames: int, device: torch.device
) -> WalkHistory:
    """Return the history of walks that have not begun."""
    latents = (walks, frames + 1, config.latent_channels, config.grid, config.grid)
    return WalkHistory(
        torch.zeros(latents, device=device),
        torch.zeros(latents, device=device),
        torch.zeros(latents, device=device),
        torch.zeros((walks, frames + 1), dtype=torch.long, device=device),
        torch.zeros((walks, frames + 1), dtype=torch.long, device=device),
        torch.zeros((walks, 2, MAX_TOKENS), dtype=torch.long, device=device),
        torch.zeros((walks, 2, 2), dtype=torch.long, device=device),
    )


def saved(history: WalkHistory, course: WalkProgress) -> dict[str, Any]:
    """Return both as tensors by name."""
    return {
        "history": {f.name: getattr(history, f.name) for f in fields(history)},
        "state": {
            f.name: torch.from_numpy(getattr(course.state, f.name)) for f in fields(WorldState)
        },
        "land": {f.name: torch.from_numpy(getattr(course.land, f.name)) for f in fields(LandMap)},
        "course": {
            name: torch.from_numpy(getattr(course, name)) for name in ("left", "settled", "habit")
        },
    }


def read_back(content: dict[str, Any], device: torch.device) -> tuple[WalkHistory, WalkProgress]:
    """Restore what `saved` returned."""
    history = WalkHistory(**{name: value.to(device) for name, value in content["history"].items()})
    parts = {
        part: {name: value.cpu().numpy() for name, value in content[part].items()}
        for part in ("state", "land", "course")
    }
    course = WalkProgress(WorldState(**parts["state"]), LandMap(**parts["land"]), **parts["course"])
    return history, course
