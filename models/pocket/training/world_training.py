"""Training of world model, text encoder and narrator: flow matching with x-prediction.

Every frame of a clip has its own noise level. The blocks compute in bfloat16 where the processor
supports it; the weights that the optimiser moves, and their running average (which is served), are
float32.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from reverie.models.pocket.config import PocketConfig
from reverie.models.pocket.narration.vocabulary import NarrationVocabulary
from reverie.models.pocket.network.narrator import Narrator
from reverie.models.pocket.network.networks import PocketNets, fast_dtype
from reverie.models.pocket.network.text_encoder import TextEncoder
from reverie.models.pocket.network.world_model import WorldModel
from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.simulator.walker import STANCES
from reverie.models.pocket.training.batches import LOW_LEVEL, Batch, BatchMaker, join
from reverie.models.pocket.training.corruption import WALKER_COLUMNS, WALKER_ROWS
from reverie.models.pocket.training.narration_batches import NarrationBatches, narration_loss
from reverie.models.pocket.training.optimisers import (
    MixedOptimiser,
    copy_weights,
    move_gradients,
    rate_factor,
)
from reverie.models.pocket.training.rollouts import RolloutMaker
from reverie.models.pocket.training.served_walks import ServedWalks
from reverie.models.pocket.training.walk_clips import OwnWalks

AREA = 4


@dataclass(frozen=True, slots=True)
class WorldSchedule:
    """How the world model is trained.

    Attributes:
        steps: optimiser steps in all; the learning rate follows them, never the clock.
        clips: clips of a batch.
        frames: frames of a clip.
        learning_rate: Muon's peak (in units of AdamW's update size); AdamW takes half of it.
        warmup: steps of linear rise.
        average: decay of the running average of the weights.
        walks: walks of the model itself that a batch has in addition to those clips.
        groups: groups of such walks, which advance in turns.
        walk_frames: frames by which a group advances.
        walks_after: step from which there are walks.
        walker_weight: weight of the walker's cells in the loss.
        change_weight: weight of the frame with which a prompt changes.
        settling_weight: weight of the frames after it.
        edge_weight: weight of the cells that come into view.
        narration_weight: weight of the narrator's loss.
        tell_every: steps between two training steps of the narrator.
        told_clips: clips of the simulator in such a step.
        told_walks: walks of the model in such a step.
        texts: texts about each.
        area_weight: weight of errors that fill whole areas of `AREA` x `AREA` cells.
    """

    steps: int = 5900
    clips: int = 8
    frames: int = 6
    learning_rate: float = 2.5e-3
    warmup: int = 80
    average: float = 0.996
    walks: int = 8
    groups: int = 4
    walk_frames: int = 4
    walks_after: int = 1000
    walker_weight: float = 5.0
    change_weight: float = 3.0
    settling_weight: float = 2.0
    area_weight: float = 3.0
    edge_weight: float = 4.0
    narration_weight: float = 0.5
    tell_every: int = 2
    told_clips: int = 5
    told_walks: int = 2
    texts: int = 10


class TrainableNets(nn.Module):
    """The networks that are trained together."""

    def __init__(self, config: PocketConfig) -> None:
        super().__init__()
        self.text = TextEncoder(config.text)
        self.world = WorldModel(config.world)
        self.narrator = Narrator(config.narrator, config.world)

    def parts(self) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """Split the parameters into the blocks' matrices and all others."""
        matrices: list[nn.Parameter] = []
        others: list[nn.Parameter] = []
        for name, parameter in self.named_parameters():
            inner = name.startswith("world.blocks.") and "modulation" not in name
            (matrices if inner and parameter.ndim == 2 else others).append(parameter)
        return matrices, others


class WorldTraining:
    """Networks, running average, optimiser, and one step of all."""

    name = "world"

    def __init__(
        self,
        config: PocketConfig,
        schedule: WorldSchedule,
        batches: BatchMaker,
        seed: int,
        device: torch.device,
        maker: RolloutMaker,
    ) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            self.master = TrainableNets(config).to(device)
        self.schedule, self.batches, self.seed = schedule, batches, seed
        self.steps = schedule.steps
        self.average = copy.deepcopy(self.master).requires_grad_(False)
        self.working = copy.deepcopy(self.master)
        self.working.world.to(fast_dtype(device))
        self.working.narrator.to(fast_dtype(device))
        self.served = copy.deepcopy(self.working).requires_grad_(False)
        narration = NarrationVocabulary.of_grammar()
        served = ServedWalks(self._served_nets(config, narration), maker, schedule.walks)
        sizes = (schedule.groups, schedule.walks, schedule.frames, schedule.walk_frames)
        self.walks = OwnWalks(batches.codec, served, seed, sizes)
        self.narration = NarrationBatches(
            batches.codec,
            batches.vocabulary,
            narration,
            seed,
            (schedule.told_clips, schedule.told_walks, schedule.texts),
        )
        self.optimiser = MixedOptimiser(*self.master.parts(), schedule.learning_rate)

    def _served_nets(self, config: PocketConfig, narration: NarrationVocabulary) -> PocketNets:
        """Return the running average as networks that can be served."""
        device = self.batches.codec.latent_mean.device
        dtype = fast_dtype(device)
        return PocketNets(
            codec=copy.deepcopy(self.batches.codec).to(dtype).channels_last(),
            text=self.served.text,
            world=self.served.world,
            narrator=self.served.narrator,
            vocabulary=self.batches.vocabulary,
            narration=narration,
            config=config,
            version="in training",
            device=device,
            dtype=dtype,
        )

    def train_step(self, step: int) -> Mapping[str, float]:
        """Run one step; report the loss and the error at high noise levels."""
        batch = self.batches.make(step)
        walking = {}
        if step >= self.schedule.walks_after:
            batch = join(batch, self.walks.make(step))
            walking = {"walks": self.walks.error}
        texts_TD = self.working.text(batch.ids_TL)
        text_BFD = texts_TD[batch.text_BF]
        made_BFZhw = self._predict(batch, text_BFD)
        error_BF = self._errors(made_BFZhw, batch)
        weight_BF = 1 / batch.level_BF.clamp(min=0.5)
        settling_BF = (batch.changes_BF.cumsum(dim=1) > 0) & ~batch.changes_BF
        weight_BF[settling_BF] *= self.schedule.settling_weight
        weight_BF[batch.changes_BF] *= self.schedule.change_weight
        weight_BF[batch.fresh_B, 0] = 0
        loss = (weight_BF * error_BF).mean()
        naming = functional.cross_entropy(self.working.text.biome_head(texts_TD), batch.biome_T)
        naming = naming + functional.cross_entropy(
            self.working.text.hour_head(texts_TD), batch.hour_T
        )
        (loss + 0.05 * naming).backward()  # type: ignore[no-untyped-call]
        told = self._tell(step) if step % self.schedule.tell_every == 0 else {}
        self._update(step)
        plain_BF = (made_BFZhw.detach() - batch.clean_BFZhw).square().mean(dim=(2, 3, 4))
        return {
            "loss": loss.item(),
            "high": plain_BF[batch.level_BF > 0.8].mean().item(),
            "naming": naming.item(),
            **walking,
            **told,
        }

    def _tell(self, step: int) -> dict[str, float]:
        """Add the gradients of the narrator's loss."""
        walks = self.walks.group(step) if step >= self.schedule.walks_after else None
        longest = self.working.world.config.window - 1
        batch = self.narration.make(step, walks, longest)
        working = self.working
        slots, words, right = narration_loss(batch, working.text, working.world, working.narrator)
        (self.schedule.narration_weight * (slots + words)).backward()  # type: ignore[no-untyped-call]
        return {"slots": slots.item(), "words": words.item(), "read": right.item()}

    def _predict(self, batch: Batch, text_BFD: Tensor) -> Tensor:
        level = batch.level_BF[:, :, None, None, None]
        shown_BFZhw = torch.where(level < LOW_LEVEL, batch.seen_BFZhw, batch.clean_BFZhw)
        noisy_BFZhw = torch.lerp(shown_BFZhw, batch.noise_BFZhw, level)
        output = self.working.world(
            noisy_BFZhw, batch.level_BF, batch.previous_BFZhw, batch.action_BF, text_BFD
        )
        clean: Tensor = output.clean_BFZhw
        return clean

    def _errors(self, made_BFZhw: Tensor, batch: Batch) -> Tensor:
        """Return each frame's mean squared error, with weights for walker and new land: [B, F].

        The error that remains after averaging over areas counts again: colours that are slightly
        wrong everywhere are what ruins a long walk.
        """
        difference = made_BFZhw - batch.clean_BFZhw
        areas = functional.avg_pool2d(difference.flatten(0, 1), AREA).square().mean(dim=(1, 2, 3))
        error = difference.square()
        weight_BFhw = self._cell_weights(error.shape[-1]).to(error.device)[batch.action_BF]
        cells = (error * weight_BFhw[:, :, None]).mean(dim=(2, 3, 4))
        return cells + self.schedule.area_weight * areas.view_as(cells)

    def _cell_weights(self, grid: int) -> Tensor:
        """Return the weight of each cell after each stance: [stances, grid, grid]."""
        weights = torch.ones(STANCES, grid, grid)
        weights[Action.UP, 0] = weights[Action.DOWN, -1] = self.schedule.edge_weight
        weights[Action.LEFT, :, 0] = weights[Action.RIGHT, :, -1] = self.schedule.edge_weight
        weights[:, WALKER_ROWS, WALKER_COLUMNS] = self.schedule.walker_weight
        return weights

    def _update(self, step: int) -> None:
        move_gradients(self.working.parameters(), self.master.parameters())
        torch.nn.utils.clip_grad_norm_(self.master.parameters(), 1.0)
        self.optimiser.step(rate_factor(step, self.schedule.steps, self.schedule.warmup))
        copy_weights(self.master.parameters(), self.working.parameters())
        decay = min(self.schedule.average, (1 + step) / (10 + step))
        with torch.no_grad():
            for mean, value in zip(
                self.average.parameters(), self.master.parameters(), strict=True
            ):
                mean.lerp_(value, 1 - decay)
        copy_weights(self.average.parameters(), self.served.parameters())

    def state_dict(self) -> dict[str, Any]:
        """Return weights, running average and optimiser."""
        return {
            "master": self.master.state_dict(),
            "average": self.average.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "walks": self.walks.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.master.load_state_dict(state["master"])
        self.average.load_state_dict(state["average"])
        self.optimiser.load_state_dict(state["optimiser"])
        copy_weights(self.master.parameters(), self.working.parameters())
        copy_weights(self.average.parameters(), self.served.parameters())
        self.walks.load_state_dict(state["walks"])
