"""The last stage: the narrator alone, on a world model that is finished.

Only what is the narrator's own moves, so that frames stay as they are, to the bit. Questions that
need a search take many more texts than frames would be worth making for.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from reverie.models.pocket.network.networks import fast_dtype
from reverie.models.pocket.training.narration_batches import NarrationBatches, narration_loss
from reverie.models.pocket.training.optimisers import copy_weights, move_gradients
from reverie.models.pocket.training.world_training import Dreamer


@dataclass(frozen=True, slots=True)
class NarratorSchedule:
    """How the narrator is trained.

    Attributes:
        steps: optimiser steps in all.
        clips: sights of a batch, all of the simulator.
        texts: texts on each.
        learning_rate: AdamW's peak; it falls on a line to nothing.
        warmup: steps of linear rise.
    """

    steps: int = 1800
    clips: int = 5
    texts: int = 24
    learning_rate: float = 2e-3
    warmup: int = 40


class NarratorTraining:
    """A finished world model, the narrator, its optimiser, and one step of all."""

    name = "narrator"

    def __init__(
        self, dreamer: Dreamer, schedule: NarratorSchedule, batches: NarrationBatches
    ) -> None:
        """Go on with the narrator of `dreamer`; what else is in it stays."""
        device = next(dreamer.parameters()).device
        self.steps, self._schedule, self._batches = schedule.steps, schedule, batches
        self.narrator = dreamer.narrator
        self._working = copy.deepcopy(dreamer).requires_grad_(False)
        self._working.world.to(fast_dtype(device))
        self._working.narrator.to(fast_dtype(device)).requires_grad_(True)
        self._optimiser = torch.optim.AdamW(
            self.narrator.parameters(), schedule.learning_rate, (0.9, 0.98), weight_decay=0.0
        )

    def train_step(self, step: int) -> Mapping[str, float]:
        """Run one step; reports the losses and the share of slots read rightly."""
        working = self._working
        batch = self._batches.make(step, None, working.world.config.window - 1)
        slots, words, right = narration_loss(batch, working.text, working.world, working.narrator)
        (slots + words).backward()  # type: ignore[no-untyped-call]
        move_gradients(working.narrator.parameters(), self.narrator.parameters())
        torch.nn.utils.clip_grad_norm_(self.narrator.parameters(), 1.0)
        rise = min(1.0, (step + 1) / self._schedule.warmup)
        for group in self._optimiser.param_groups:
            group["lr"] = self._schedule.learning_rate * rise * (1 - step / self.steps)
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
        copy_weights(self.narrator.parameters(), working.narrator.parameters())
        return {"slots": slots.item(), "words": words.item(), "read": right.item()}

    def state_dict(self) -> dict[str, Any]:
        """Return the narrator and its optimiser."""
        return {
            "narrator": self.narrator.state_dict(),
            "optimiser": self._optimiser.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` returned."""
        self.narrator.load_state_dict(state["narrator"])
        self._optimiser.load_state_dict(state["optimiser"])
        copy_weights(self.narrator.parameters(), self._working.narrator.parameters())
