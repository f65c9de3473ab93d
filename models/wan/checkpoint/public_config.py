"""The sizes in a checkpoint's `config.json`, compared with its tensors.

The tensors imply every size but the number of attention heads. Only the file has that, and a wrong
number would make noise without an error.

Source: the configurations of Wan 2.1 and of its diffusers port.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reverie.models.contract.errors import CheckpointError
from reverie.models.services.checkpoints import read_config
from reverie.models.wan.config import WanConfig

HEADS, HEAD_SIZE = "num_attention_heads", "attention_head_dim"
_PORTED = {"in_dim": "in_channels", "out_dim": "out_channels", "num_heads": HEADS}
"""The port's names of sizes, where they differ from the original's."""
_IMPLIED_BY_TENSORS = (
    "dim", "ffn_dim", "num_layers", "in_dim", "out_dim", "text_dim", "freq_dim",
)  # fmt: skip
_SUPPORTED = {
    "cross_attn_norm": (True,),
    "qk_norm": ("rms_norm_across_heads", True),
    "image_dim": (None,),
    "added_kv_proj_dim": (None,),
}
"""Fields that change the computation, and the supported values."""


def read_public_config(folders: Sequence[Path], implied: WanConfig) -> WanConfig | None:
    """Return the sizes of a checkpoint with those of its `config.json`; None: it has no such file.

    Args:
        folders: where the file may be, best first.
        implied: the sizes that the tensors imply; the number of heads is ignored.

    Raises:
        CheckpointError: names the file and the field that is invalid or contradicts the tensors.
    """
    for folder in folders:
        for path in (folder / "transformer" / "config.json", folder / "config.json"):
            if not path.is_file():
                continue
            values = read_config(path)
            ported = path.parent.name == "transformer" or HEADS in values
            if not ported and not {"dim", "num_heads"} & values.keys():
                continue  # a file of another model
            try:
                return _agreed(values, implied, _PORTED if ported else {})
            except (TypeError, ValueError) as error:
                raise CheckpointError(f"{path}: {error}") from error
    return None


def _agreed(values: Mapping[str, Any], implied: WanConfig, called: Mapping[str, str]) -> WanConfig:
    for name, known in _SUPPORTED.items():
        if name in values and values[name] not in known:
            raise ValueError(f"{name} {values[name]!r} is not supported")
    said = {
        own: values[called.get(own, own)]
        for own in asdict(implied)
        if called.get(own, own) in values
    }
    said = {own: value for own, value in said.items() if value is not None}
    if called:
        for name in (HEADS, HEAD_SIZE):
            _require_whole(name, values.get(name))
        said["dim"] = values[HEADS] * values[HEAD_SIZE]
    elif "num_heads" not in said:
        raise ValueError("num_heads is missing")
    for own in ("num_heads", "text_len", *_IMPLIED_BY_TENSORS):
        if own in said:
            _require_whole(called.get(own, own), said[own])
    eps = said.get("eps", implied.eps)
    if type(eps) not in (int, float) or not 0 < eps < 1:
        raise ValueError(f"eps must be a number between 0 and 1, not {eps!r}")
    for own in _IMPLIED_BY_TENSORS:
        if own in said and said[own] != getattr(implied, own):
            name = f"{HEADS} * {HEAD_SIZE}" if called and own == "dim" else called.get(own, own)
            raise ValueError(f"{name} is {said[own]}, but the tensors have {getattr(implied, own)}")
    sides = (1, implied.patch, implied.patch)
    patch = values.get("patch_size", sides)
    if not isinstance(patch, list | tuple) or tuple(patch) != sides:
        raise ValueError(f"patch_size is {patch}, but the tensors have {list(sides)}")
    kind = {"model_type": values["model_type"]} if "model_type" in values else {}
    return WanConfig.from_public({**asdict(implied), **said, "patch_size": patch, **kind})


def _require_whole(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1, not {value!r}")
