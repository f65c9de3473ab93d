"""What scales the pairs of a LoRA, as peft and diffusers write it down."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from reverie.models.contract.errors import CheckpointError

HEADER = "lora_adapter_metadata"
"""Where diffusers writes the configuration in the header of a safetensors file."""

_READ = frozenset(
    ("peft_type", "r", "lora_alpha", "use_rslora", "rank_pattern", "alpha_pattern")
)  # fmt: skip
_OF_TRAINING = frozenset(
    (
        "task_type", "base_model_name_or_path", "revision", "inference_mode", "auto_mapping",
        "peft_version", "target_modules", "exclude_modules", "layers_to_transform",
        "layers_pattern", "lora_dropout", "megatron_core", "qalora_group_size", "runtime_config",
        "eva_config", "corda_config", "loftq_config", "lora_ga_config", "lora_bias",
    )
)  # fmt: skip
"""Fields that say how or where the pairs were trained, and nothing of what they mean now; or, as
`lora_bias`, what the tensors themselves say."""

_NEUTRAL = {"bias": ("none",), "init_lora_weights": (True, "gaussian", "eva", "orthogonal")}
"""Of other fields the values that change nothing; of all: null, false, and nothing at all. Other
ways to begin change the weights below as well, so that the pairs alone mean something else."""


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
        if kind != "LORA":
            raise CheckpointError(f"{where}: peft_type {kind!r}: only LORA is understood")
        for name in sorted(values.keys() - _READ - _OF_TRAINING):
            if not _changes_nothing(name, values[name]):
                raise CheckpointError(
                    f"{where}: {name} is {values[name]!r}, which is not understood"
                )
        try:
            for pattern in (
                *(values.get("rank_pattern") or ()),
                *(values.get("alpha_pattern") or ()),
            ):
                re.compile(pattern)
            alphas = (values.get("alpha_pattern") or {}).items()
            ranks = (values.get("rank_pattern") or {}).items()
            return cls(
                rank=_whole("r", values["r"]) if "r" in values else None,
                alpha=finite("lora_alpha", values["lora_alpha"])
                if "lora_alpha" in values
                else None,
                rooted=_switch("use_rslora", values.get("use_rslora") or False),
                ranks=tuple((key, _whole(f"rank_pattern {key}", v)) for key, v in ranks),
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
            plain = _of_one_part(values)
        except (OSError, SafetensorError, ValueError, AttributeError) as error:
            raise CheckpointError(f"cannot read {weights}: {error}") from error
        return cls.from_peft(plain, weights)


def _changes_nothing(name: str, value: object) -> bool:
    return (
        any(value is off for off in (None, False))
        or value in ("", [], {})
        or any(type(value) is type(known) and value == known for known in _NEUTRAL.get(name, ()))
    )


def _of_one_part(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without the part of the model that they are said for.

    Raises:
        ValueError: two parts have different ones.
    """
    plain: dict[str, Any] = {}
    for name, value in values.items():
        part, _, own = str(name).rpartition(".")
        if own in plain and own in _READ and plain[own] != value:
            raise ValueError(f"{HEADER}: {own} is {value!r} for {part}, and {plain[own]!r} else")
        plain[own] = value
    return plain


def _whole(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} is {value!r}, and is a whole number from 1")
    return value


def _switch(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}, and is true or false")
    return value


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
