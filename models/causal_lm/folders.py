"""What a folder of a language model holds, seen from its names and headers; no weights are read.

Shapes are compared under the names that the library gives its weights. It converts those of some
older checkpoints itself, so that a tensor of another name is not called wrong here.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from reverie.models.checkpoints import (
    CheckpointManifest,
    CheckpointReport,
    StoredTensor,
    read_config,
)
from reverie.models.errors import CheckpointError

INDEX = "model.safetensors.index.json"
WHOLE = "model.safetensors"
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.*", "spiece.model", "*.bpe.model",
              "tekken.json", "*.tiktoken")  # fmt: skip
"""Files that any of the library's tokenizers is made from; its settings alone are none."""


def require_tokenizer(folder: Path) -> None:
    """Refuse a folder without words: the library would make up a tokenizer that knows none.

    Raises:
        CheckpointError: says what is missing.
    """
    if without := lacking_tokenizer(folder):
        raise CheckpointError(f"{folder} lacks {without[0]}")


def lacking_tokenizer(folder: Path) -> tuple[str, ...]:
    """Return what is missing of a tokenizer, in words."""
    if any(next(folder.glob(pattern), None) for pattern in TOKENIZERS):
        return ()
    return (f"a tokenizer ({', '.join(TOKENIZERS)})",)


def check(folder: Path) -> CheckpointReport:
    """Compare a folder with the language model that its `config.json` describes.

    Raises:
        CheckpointError: it is none, or its files cannot be read.
    """
    if not (folder / "config.json").is_file():
        raise CheckpointError(f"{folder} holds no config.json of a language model")
    model = bare_model(folder)
    lost = _lost_shards(folder)
    stored = _stored(folder)
    wanted = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    common = wanted.keys() & stored.keys()
    if not common:
        raise CheckpointError(f"{folder}: no tensor has a name that {type(model).__name__} knows")
    misshapen = tuple(
        f"{name} is {list(stored[name].shape)}, not {list(wanted[name])}"
        for name in sorted(common)
        if stored[name].shape != wanted[name]
    )
    return CheckpointReport(
        layout=f"transformers, {type(model).__name__}",
        matched=len(common) - len(misshapen),
        unmatched=(),
        missing=(),
        misshapen=misshapen,
        dtypes=Counter(tensor.dtype for tensor in stored.values()),
        lacking=(*lost, *lacking_tokenizer(folder)),
    )


def bare_model(folder: Path) -> nn.Module:
    """Return the model that a folder's `config.json` describes, on device `meta`.

    Raises:
        CheckpointError: the file cannot be read, or describes no decoder-only language model.
    """
    kind = read_config(folder / "config.json").get("model_type")
    make: Any = AutoModelForCausalLM
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        with torch.device("meta"):
            model: nn.Module = make.from_config(config)
    except (ArithmeticError, AttributeError, ImportError, LookupError) as error:
        raise CheckpointError(f"cannot read {folder / 'config.json'}: {error!r}") from error
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        why = f"model_type is {kind!r}, which is no decoder-only language model that is known here"
        raise CheckpointError(f"{folder / 'config.json'}: {why}") from error
    return model


def _lost_shards(folder: Path) -> tuple[str, ...]:
    index = folder / INDEX
    if not index.is_file():
        return ()
    shards = read_config(index).get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise CheckpointError(f"{index}: weight_map names no files")
    return tuple(sorted(name for name in set(shards.values()) if not (folder / name).is_file()))


def _stored(folder: Path) -> dict[str, StoredTensor]:
    for pattern in (WHOLE, "model-*.safetensors"):
        manifest = CheckpointManifest("transformers", (pattern,))
        if files := manifest.find(folder):
            return manifest.tensors(files)
    raise CheckpointError(f"{folder} holds no {WHOLE} and no {INDEX} with its files")
