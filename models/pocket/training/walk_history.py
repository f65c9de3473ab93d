"""What is kept of walks of the model itself: their last frames, and where they are.

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
from reverie.models.pocket.training.land_map import Land


@dataclass(slots=True)
class WalkHistory:
    """The last F + 1 frames of B walks, oldest first; the first only lends its latents.

    Attributes:
        made_BFZhw: what the model made.
        aims_BFZhw: what it should have made.
        noise_BFZhw: what it made that from.
        action_BF: what led to each frame, as a stance.
        text_BF: which of the two texts was in force.
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
class Course:
    """Where B walks are.

    Attributes:
        state: place, facing, clock, biome and hour asked for.
        land: the tiles in view.
        left: frames to live.
        settled: frames since the prompt changed.
        habit: how likely the last action is repeated.
    """

    state: WorldState
    land: Land
    left: NDArray[np.int64]
    settled: NDArray[np.int64]
    habit: NDArray[np.float64]


def nothing(config: WorldConfig, walks: int, frames: int, device: torch.device) -> WalkHistory:
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


def saved(history: WalkHistory, course: Course) -> dict[str, Any]:
    """Return both as tensors by name."""
    return {
        "history": {f.name: getattr(history, f.name) for f in fields(history)},
        "state": {
            f.name: torch.from_numpy(getattr(course.state, f.name)) for f in fields(WorldState)
        },
        "land": {f.name: torch.from_numpy(getattr(course.land, f.name)) for f in fields(Land)},
        "course": {
            name: torch.from_numpy(getattr(course, name)) for name in ("left", "settled", "habit")
        },
    }


def read_back(content: dict[str, Any], device: torch.device) -> tuple[WalkHistory, Course]:
    """Take back what `saved` returned."""
    history = WalkHistory(**{name: value.to(device) for name, value in content["history"].items()})
    parts = {
        part: {name: value.cpu().numpy() for name, value in content[part].items()}
        for part in ("state", "land", "course")
    }
    course = Course(WorldState(**parts["state"]), Land(**parts["land"]), **parts["course"])
    return history, course
