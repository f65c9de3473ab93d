"""What scales the pairs of a LoRA, as peft and diffusers write it down."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from reverie.models.errors import CheckpointError

HEADER = "lora_adapter_metadata"
"""Where diffusers writes the configuration in the header of a safetensors file."""

_MOVED_WEIGHTS = ("pissa", "olora", "corda", "loftq")
"""Ways to begin that change the weights below as well: the pairs alone then mean something else."""


@dataclass(frozen=True, slots=True)
class LoraSettings:
    """What scales the pairs of an adapter.

    Attributes:
        rank: of every pair; None: as the tensors say.
        alpha: None: the rank, so that the scale is 1.
        rooted: divide by the root of the rank, not by the rank (rsLoRA, arXiv:2312.03732).
        ranks: for layers whose path ends like the key.
        alphas: likewise.
    """

    rank: int | None = None
    alpha: float | None = None
    rooted: bool = False
    ranks: tuple[tuple[str, int], ...] = ()
    alphas: tuple[tuple[str, float], ...] = ()

    @classmethod
    def from_peft(cls, values: Mapping[str, Any], where: Path) -> "LoraSettings":
        """Read a peft configuration.

        Raises:
            CheckpointError: it is of another kind of adapter, or asks for what is not done here.
        """
        kind = values.get("peft_type", "LORA")
        begun = str(values.get("init_lora_weights", ""))
        unread = [
            name for name in ("use_dora", "fan_in_fan_out", "layer_replication") if values.get(name)
        ]
        if kind != "LORA":
            raise CheckpointError(f"{where}: peft_type {kind!r}: only LORA is understood")
        if unread or begun.startswith(_MOVED_WEIGHTS):
            raise CheckpointError(f"{where}: {(unread or [begun])[0]} is not understood")
        try:
            for pattern in (
                *(values.get("rank_pattern") or ()),
                *(values.get("alpha_pattern") or ()),
            ):
                re.compile(pattern)
            alphas = (values.get("alpha_pattern") or {}).items()
            return cls(
                rank=int(values["r"]) if "r" in values else None,
                alpha=finite("lora_alpha", values["lora_alpha"])
                if "lora_alpha" in values
                else None,
                rooted=bool(values.get("use_rslora", False)),
                ranks=tuple((k, int(v)) for k, v in (values.get("rank_pattern") or {}).items()),
                alphas=tuple((k, finite(f"alpha_pattern {k}", v)) for k, v in alphas),
            )
        except (TypeError, ValueError, AttributeError, re.error) as error:
            raise CheckpointError(f"{where}: {error}") from error

    def rank_of(self, module: str) -> int | None:
        """Return the rank that the configuration says, for a layer by its public name."""
        return next((rank for key, rank in self.ranks if _names(key, module)), self.rank)

    def scale(self, module: str, rank: int, alpha: float | None) -> float:
        """Return the scale of a pair.

        Args:
            alpha: what the file itself says beside the pair; it comes first.
        """
        if alpha is None:
            alpha = next((a for key, a in self.alphas if _names(key, module)), self.alpha)
        if alpha is None:
            return 1.0
        return alpha / (math.sqrt(rank) if self.rooted else rank)

    @classmethod
    def written_inside(cls, weights: Path) -> "LoraSettings":
        """Read what diffusers writes into the header of a safetensors file; others say nothing.

        Raises:
            CheckpointError: the file cannot be read, or see `from_peft`.
        """
        if weights.suffix != ".safetensors":
            return cls()
        try:
            with safe_open(weights, "pt") as file:
                values = json.loads((file.metadata() or {}).get(HEADER, "{}"))
            plain = {str(name).removeprefix("transformer."): v for name, v in values.items()}
        except (OSError, SafetensorError, ValueError, AttributeError) as error:
            raise CheckpointError(f"cannot read {weights}: {error}") from error
        return cls.from_peft(plain, weights)


def finite(name: str, value: Any) -> float:
    """Return a scale that pairs can be multiplied with.

    Raises:
        ValueError: it is no number, or none that ends; names it.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} is {value!r}, and is a finite number")
    return number


def _names(key: str, module: str) -> bool:
    """Tell whether a pattern of peft's names a layer: all of its path, or the end of it."""
    return re.match(rf"(?:.*\.)?(?:{key})$", module) is not None
