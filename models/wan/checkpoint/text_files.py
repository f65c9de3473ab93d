"""The text encoder and the tokenizer of a checkpoint: checked, then loaded."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase, UMT5Config, UMT5EncoderModel

from reverie.models.contract.errors import CheckpointError
from reverie.models.services.checkpoint_report import NOTHING, CheckpointReport, of_fault
from reverie.models.services.checkpoints import CheckpointManifest, read_config
from reverie.models.services.transformers_folders import (
    read_tokenizer,
    require_words_fit,
    tokenizer_files,
    weights_report,
)
from reverie.models.services.weight_files import files_of
from reverie.models.wan.checkpoint.layouts import TEXT_PARTS

KIND = "umt5"


@dataclass(frozen=True, slots=True)
class LoadedText:
    """The text encoder and its tokenizer, in host memory."""

    encoder: UMT5EncoderModel
    tokenizer: PreTrainedTokenizerBase


def check_text(folder: Path, width: int | None) -> CheckpointReport:
    """Check text encoder and tokenizer, as far as they exist.

    Args:
        folder: has `text_encoder/` and `tokenizer/`.
        width: of a row that the transformer reads; None: it is unknown.
    """
    report, words = NOTHING, None
    encoder, tokenizer = (folder / part for part in TEXT_PARTS)
    try:
        if encoder.is_dir():
            config = _config(encoder)
            words = config.vocab_size
            report = report.joined(_encoder(folder, encoder, config))
            if width not in (None, config.d_model):
                raise CheckpointError(
                    f"{encoder} belongs to another model: its rows have {config.d_model} numbers, "
                    f"and the transformer reads rows of {width}"
                )
    except CheckpointError as fault:
        report = report.joined(of_fault(fault))
    if not tokenizer.is_dir():
        return report
    try:
        read = read_tokenizer(tokenizer)
        if words is not None:
            require_words_fit(tokenizer, read, words)
    except CheckpointError as fault:
        return report.joined(of_fault(fault))
    return report.joined(NOTHING.of_part("tokenizer", folder, tokenizer_files(tokenizer)))


def load_text(folder: Path) -> LoadedText:
    """Load text encoder and tokenizer; call it after `check_text` has found no fault.

    Raises:
        CheckpointError: one cannot be read, or weights are missing.
    """
    encoder, tokenizer = (folder / part for part in TEXT_PARTS)
    load: Any = UMT5EncoderModel.from_pretrained
    try:
        model, told = load(
            encoder, local_files_only=True, trust_remote_code=False, output_loading_info=True
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"the text encoder in {encoder} cannot be read: {error}") from error
    if missing := sorted(told["missing_keys"]):
        raise CheckpointError(f"{encoder} is missing weights: {', '.join(missing)}")
    return LoadedText(model, read_tokenizer(tokenizer))


def _config(encoder: Path) -> UMT5Config:
    path = encoder / "config.json"
    values = read_config(path)
    if (kind := values.get("model_type")) != KIND:
        raise CheckpointError(
            f"{path}: model_type of the text encoder must be {KIND!r}, not {kind!r}"
        )
    make: Any = UMT5Config.from_dict
    try:
        config: UMT5Config = make(values)
    except Exception as error:  # the library's own checks of its fields
        raise CheckpointError(f"{path}: {error}") from error
    return config


def _encoder(folder: Path, encoder: Path, config: UMT5Config) -> CheckpointReport:
    files = files_of(encoder, "model") if _named(encoder, "model") else ()
    files = files or files_of(encoder, "pytorch_model")
    stored = CheckpointManifest("umT5", ()).tensors(files)
    report = weights_report(UMT5EncoderModel, config, stored)
    if not report.matched:
        raise CheckpointError(f"{files[0]} is not a umT5 encoder: none of its tensors match")
    return replace(report, layout="umT5").of_part("text encoder", folder, files)


def _named(folder: Path, stem: str) -> bool:
    return any(folder.glob(f"{stem}*.safetensors*"))
