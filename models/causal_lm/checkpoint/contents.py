"""What a folder of a language model contains, by names and headers; no weights are read."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from reverie.models.contract.errors import CheckpointError
from reverie.models.services.checkpoint_report import NOTHING, CheckpointReport, of_fault
from reverie.models.services.checkpoints import CheckpointManifest, StoredTensor, read_config
from reverie.models.services.transformers_folders import (
    lacking_tokenizer,
    read_tokenizer,
    require_words_fit,
    tokenizer_files,
    weights_report,
)
from reverie.models.services.weight_files import files_of

STEM = "model"
SUFFIXES = (".safetensors",)
"""Of the files that are read: those of older checkpoints can run code."""


def check(folder: Path) -> CheckpointReport:
    """Compare a folder with the language model that its `config.json` describes.

    Raises:
        CheckpointError: it is not one.
    """
    if not folder.exists():
        raise CheckpointError(f"{folder}: no such folder")
    if folder.is_file():
        raise CheckpointError(f"{folder} is a file: name its folder instead")
    if not (folder / "config.json").is_file():
        raise CheckpointError(f"{folder} has no config.json of a language model")
    model = bare_model(folder)
    try:
        weights = _weights(folder, model)
    except CheckpointError as fault:
        weights = of_fault(fault)
    return weights.joined(_tokenizer(folder, model))


def _weights(folder: Path, model: PreTrainedModel) -> CheckpointReport:
    files = files_of(folder, STEM, SUFFIXES)
    stored = stored_in(files)
    report = weights_report(type(model), model.config, stored).of_part("weights", folder, files)
    if not report.matched:
        raise CheckpointError(f"{folder}: no tensor belongs to {type(model).__name__}")
    return report


def _tokenizer(folder: Path, model: PreTrainedModel) -> CheckpointReport:
    if lacking := lacking_tokenizer(folder):
        return replace(NOTHING, lacking=lacking)
    try:
        embeddings: Any = model.get_input_embeddings()
        words: int = embeddings.weight.shape[0]
        require_words_fit(folder, read_tokenizer(folder), words)
    except CheckpointError as fault:
        return of_fault(fault)
    return NOTHING.of_part("tokenizer", folder, tokenizer_files(folder))


def bare_model(folder: Path) -> PreTrainedModel:
    """Return the model that a folder's `config.json` describes, on device `meta`.

    Raises:
        CheckpointError: the file cannot be read, or describes no decoder-only language model.
    """
    kind = read_config(folder / "config.json").get("model_type")
    make: Any = AutoModelForCausalLM
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        with torch.device("meta"):
            model: PreTrainedModel = make.from_config(config, trust_remote_code=False)
    except (ArithmeticError, AttributeError, ImportError, LookupError) as error:
        raise CheckpointError(f"cannot read {folder / 'config.json'}: {error!r}") from error
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        why = f"model_type {kind!r} is not a decoder-only language model that transformers knows"
        raise CheckpointError(f"{folder / 'config.json'}: {why}") from error
    return model


def stored_in(files: tuple[Path, ...]) -> dict[str, StoredTensor]:
    """Return the tensors of files that transformers has saved.

    Raises:
        CheckpointError: one cannot be read.
    """
    return CheckpointManifest("transformers", ()).tensors(files)
