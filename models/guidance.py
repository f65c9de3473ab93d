"""Classifier-free guidance as a policy of the loop (Ho & Salimans 2022, arXiv:2207.12598).

A policy turns a model's prediction with and without the prompt into one, and names the space that
it combines in: guidance on clean-sample predictions is not guidance on velocities.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import torch
from torch import Tensor

Predict = Callable[[Tensor], Tensor]
"""Conditioning [B, D] -> prediction [B, ...], with everything else already bound.

A batch larger than the bound inputs means that they are repeated to match.
"""


class CombineSpace(StrEnum):
    """What the combined predictions are."""

    CLEAN = "clean"
    VELOCITY = "velocity"
    NOISE = "noise"


class CFGPolicy(Protocol):
    """How the predictions with and without a prompt become one."""

    @property
    def space(self) -> CombineSpace:
        """What the combined predictions are."""

    def guide(self, predict: Predict, prompt_BD: Tensor, empty_BD: Tensor) -> Tensor:
        """Return the guided prediction [B, ...]."""


@dataclass(frozen=True, slots=True)
class Unguided:
    """The prediction with the prompt, as it is: one pass."""

    space: CombineSpace = CombineSpace.CLEAN

    def guide(self, predict: Predict, prompt_BD: Tensor, empty_BD: Tensor) -> Tensor:
        """Return the prediction with the prompt."""
        return predict(prompt_BD)


@dataclass(frozen=True, slots=True)
class TwoPass:
    """Two forward passes: least memory."""

    scale: float
    space: CombineSpace = CombineSpace.CLEAN

    def guide(self, predict: Predict, prompt_BD: Tensor, empty_BD: Tensor) -> Tensor:
        """Return empty + scale * (prompt - empty)."""
        return _combine(predict(prompt_BD), predict(empty_BD), self.scale)


@dataclass(frozen=True, slots=True)
class OneBatch:
    """One forward pass over twice the batch: fewest kernel launches."""

    scale: float
    space: CombineSpace = CombineSpace.CLEAN

    def guide(self, predict: Predict, prompt_BD: Tensor, empty_BD: Tensor) -> Tensor:
        """Return empty + scale * (prompt - empty)."""
        both: Sequence[Tensor] = predict(torch.cat((prompt_BD, empty_BD))).chunk(2)
        return _combine(both[0], both[1], self.scale)


def _combine(prompt: Tensor, empty: Tensor, scale: float) -> Tensor:
    return empty + scale * (prompt - empty)
