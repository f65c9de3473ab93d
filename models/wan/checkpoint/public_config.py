"""What the `config.json` of a checkpoint says of its sizes, held against its tensors.

The tensors imply every size but one: into how many heads their channels are split. Only the file
says that, and wrong heads would be noise that nobody was warned of.

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
"""What the port calls sizes that it does not call as the original does."""
_SHOWN_BY_TENSORS = (
    "dim", "ffn_dim", "num_layers", "in_dim", "out_dim", "text_dim", "freq_dim",
)  # fmt: skip
_UNDERSTOOD = {
    "cross_attn_norm": (True,),
    "qk_norm": ("rms_norm_across_heads", True),
    "image_dim": (None,),
    "added_kv_proj_dim": (None,),
}
"""Fields that change what is computed, and the values that are computed here."""


def config_said(folders: Sequence[Path], implied: WanConfig) -> WanConfig | None:
    """Return the sizes of a checkpoint as its `config.json` completes them; None: it has none.

    Args:
        folders: where the file may be, best first.
        implied: the sizes that the tensors imply; the number of heads is not looked at.

    Raises:
        CheckpointError: names the file and the field that cannot be, or that the tensors deny.
    """
    for folder in folders:
        for path in (folder / "transformer" / "config.json", folder / "config.json"):
            if not path.is_file():
                continue
            values = read_config(path)
            ported = path.parent.name == "transformer" or HEADS in values
            if not ported and not {"dim", "num_heads"} & values.keys():
                continue  # a file of somebody else's
            try:
                return _agreed(values, implied, _PORTED if ported else {})
            except (TypeError, ValueError) as error:
                raise CheckpointError(f"{path}: {error}") from error
    return None


def _agreed(values: Mapping[str, Any], implied: WanConfig, called: Mapping[str, str]) -> WanConfig:
    for name, known in _UNDERSTOOD.items():
        if name in values and values[name] not in known:
            raise ValueError(f"{name} is {values[name]!r}, which is not understood")
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
    for own in ("num_heads", "text_len", *_SHOWN_BY_TENSORS):
        if own in said:
            _require_whole(called.get(own, own), said[own])
    eps = said.get("eps", implied.eps)
    if type(eps) not in (int, float) or not 0 < eps < 1:
        raise ValueError(f"eps is {eps!r}, and is a number between 0 and 1")
    for own in _SHOWN_BY_TENSORS:
        if own in said and said[own] != getattr(implied, own):
            name = f"{HEADS} * {HEAD_SIZE}" if called and own == "dim" else called.get(own, own)
            raise ValueError(f"{name} is {said[own]}, and the tensors have {getattr(implied, own)}")
    sides = (1, implied.patch, implied.patch)
    patch = values.get("patch_size", sides)
    if not isinstance(patch, list | tuple) or tuple(patch) != sides:
        raise ValueError(f"patch_size is {patch}, and the tensors have {list(sides)}")
    kind = {"model_type": values["model_type"]} if "model_type" in values else {}
    return WanConfig.from_public({**asdict(implied), **said, "patch_size": patch, **kind})


def _require_whole(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} is {value!r}, and is a whole number from 1")
