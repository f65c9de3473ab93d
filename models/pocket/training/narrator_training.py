"""The last part of training: the narrator alone, on a finished world model.

Only the narrator's own parameters change, so frames stay the same to the bit. Questions that need a
search take many texts, more than own walks would be worth making for.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from reverie.models.pocket.network.networks import fast_dtype
from reverie.models.pocket.training.narration_batches import NarrationBatches, narration_loss
from reverie.models.pocket.training.optimisers import copy_weights, move_gradients
from reverie.models.pocket.training.world_training import TrainableNets


@dataclass(frozen=True, slots=True)
class NarratorSchedule:
    """How the narrator is trained.

    Attributes:
        steps: optimiser steps in all.
        clips: clips of a batch, all of the simulator.
        texts: texts about each.
        learning_rate: AdamW's peak; it falls linearly to zero.
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
        self, nets: TrainableNets, schedule: NarratorSchedule, batches: NarrationBatches
    ) -> None:
        """Train the narrator of `nets`; the other networks stay the same."""
        device = next(nets.parameters()).device
        self.steps, self._schedule, self._batches = schedule.steps, schedule, batches
        self.narrator = nets.narrator
        self._working = copy.deepcopy(nets).requires_grad_(False)
        self._working.world.to(fast_dtype(device))
        self._working.narrator.to(fast_dtype(device)).requires_grad_(True)
        self._optimiser = torch.optim.AdamW(
            self.narrator.parameters(), schedule.learning_rate, (0.9, 0.98), weight_decay=0.0
        )

    def train_step(self, step: int) -> Mapping[str, float]:
        """Run one step; report the losses and the share of slots read correctly."""
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
        """Restore what `state_dict` returned."""
        self.narrator.load_state_dict(state["narrator"])
        self._optimiser.load_state_dict(state["optimiser"])
        copy_weights(self.narrator.parameters(), self._working.narrator.parameters())
