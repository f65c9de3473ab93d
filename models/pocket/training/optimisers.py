"""Optimisers: Muon for the blocks' matrices, AdamW for all else; master weights in float32."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


class MixedOptimiser:
    """Two optimisers that step together."""

    def __init__(
        self, matrices: list[nn.Parameter], others: list[nn.Parameter], rate: float
    ) -> None:
        self._muon = torch.optim.Muon(
            matrices, lr=rate, weight_decay=0.01, momentum=0.95, adjust_lr_fn="match_rms_adamw"
        )
        self._adamw = torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.98), weight_decay=0.0)
        self._rates = (rate, 0.5 * rate)

    def step(self, factor: float) -> None:
        """Step with `factor` times the peak learning rates, then drop the gradients."""
        for optimiser, rate in zip((self._muon, self._adamw), self._rates, strict=True):
            for group in optimiser.param_groups:
                group["lr"] = rate * factor
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of both."""
        return {"muon": self._muon.state_dict(), "adamw": self._adamw.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self._muon.load_state_dict(state["muon"])
        self._adamw.load_state_dict(state["adamw"])


def rate_factor(step: int, steps: int, warmup: int) -> float:
    """Return the share of the peak rate: a rise, a plateau to 30 %, then a line to 3 %."""
    rise = min(1.0, (step + 1) / warmup)
    fall = max(0.0, (step / steps - 0.3) / 0.7)
    return float(rise * max(0.03, 1 - fall))


def copy_weights(source: Iterable[Tensor], target: Iterable[Tensor]) -> None:
    """Copy values into another precision, in place."""
    with torch.no_grad():
        for a, b in zip(source, target, strict=True):
            b.copy_(a)


def move_gradients(source: Iterable[nn.Parameter], target: Iterable[nn.Parameter]) -> None:
    """Move the working copy's gradients to the float32 master weights."""
    for working, master in zip(source, target, strict=True):
        if working.grad is not None:
            master.grad = working.grad.to(master.dtype)
            working.grad = None
