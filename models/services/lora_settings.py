"""The scales of a LoRA's pairs, as peft and diffusers save them."""

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
"""Fields about how the pairs were trained, which do not change what they mean now. The tensors
themselves show `lora_bias`."""

_NEUTRAL = {"bias": ("none",), "init_lora_weights": (True, "gaussian", "eva", "orthogonal")}
"""Values of other fields that have no effect, besides null, false and empty ones. Other
initialisations change the base weights as well, so that the pairs alone mean something else."""


@dataclass(frozen=True, slots=True)
class LoraSettings:
    """The ranks and scales of an adapter's pairs.

    Attributes:
        rank: of every pair; None: taken from the tensors.
        alpha: None: the rank, so that the scale is 1.
        rooted: divide by the square root of the rank (rsLoRA, arXiv:2312.03732).
        ranks: for layers whose path ends with the key.
        alphas: for layers whose path ends with the key.
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
            CheckpointError: it is another kind of adapter, or has unsupported settings.
        """
        kind = values.get("peft_type", "LORA")
        if kind != "LORA":
            raise CheckpointError(f"{where}: peft_type must be LORA, not {kind!r}")
        for name in sorted(values.keys() - _READ - _OF_TRAINING):
            if not _changes_nothing(name, values[name]):
                raise CheckpointError(f"{where}: {name} {values[name]!r} is not supported")
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
        """Return the configured rank of a layer, by its public name."""
        return next((rank for key, rank in self.ranks if _names(key, module)), self.rank)

    def scale(self, module: str, rank: int, alpha: float | None) -> float:
        """Return the scale of a pair.

        Args:
            alpha: the value in the file of the pair, which takes precedence.
        """
        if alpha is None:
            alpha = next((a for key, a in self.alphas if _names(key, module)), self.alpha)
        if alpha is None:
            return 1.0
        return alpha / (math.sqrt(rank) if self.rooted else rank)

    @classmethod
    def written_inside(cls, weights: Path) -> "LoraSettings":
        """Read the settings in the header of a safetensors file, where diffusers writes them.

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
    """Return settings without the names of the model's parts.

    Raises:
        ValueError: two parts have different settings.
    """
    plain: dict[str, Any] = {}
    for name, value in values.items():
        part, _, own = str(name).rpartition(".")
        if own in plain and own in _READ and plain[own] != value:
            raise ValueError(
                f"{HEADER}: {own} is {value!r} for {part}, but {plain[own]!r} elsewhere"
            )
        plain[own] = value
    return plain


def _whole(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1, not {value!r}")
    return value


def _switch(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, not {value!r}")
    return value


def finite(name: str, value: Any) -> float:
    """Return a scale as a finite number.

    Raises:
        ValueError: it is not one; names it.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, not {value!r}")
    return number


def _names(key: str, module: str) -> bool:
    """Tell whether a pattern of peft matches a layer: its whole path, or the end of it."""
    return re.match(rf"(?:.*\.)?(?:{key})$", module) is not None
