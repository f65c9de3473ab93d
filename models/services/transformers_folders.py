"""Folders as the library transformers saves them: whether weights fit, and the tokenizer.

The library renames, joins and ties the tensors of many checkpoints as it loads them. So its own
loader is run to check whether they fit, on tensors that have shapes but no values. The library
initialises missing tensors at random and says so only in a log. No code of a checkpoint is run.
"""

import json
import logging
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as library_log

from reverie.models.contract.errors import CheckpointError
from reverie.models.number_types import type_faults
from reverie.models.services.checkpoint_report import CheckpointReport
from reverie.models.services.checkpoints import StoredTensor
from reverie.models.services.weight_files import refuse_stand_in

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.*", "spiece.model", "*.bpe.model",
              "tekken.json", "*.tiktoken")  # fmt: skip
"""Files that the library's tokenizers are made from; settings alone are not enough."""

_log: Any = library_log  # typed in part

_LAYER = re.compile(r"^(.*?)\.\d+\.")
_COMPUTED = "rotary_emb.inv_freq"
"""Angles that older checkpoints also contain."""
_ONE_THREAD = "HF_DEACTIVATE_ASYNC_LOAD"
"""Makes the library load on the calling thread, where tensors without values are supported."""


def weights_report(
    kind: type[PreTrainedModel], config: Any, stored: Mapping[str, StoredTensor]
) -> CheckpointReport:
    """Return how tensors fit a model of the library, without reading them.

    Args:
        kind: class of the model.
        config: the library's, of that model.
        stored: by their names in the file.

    Raises:
        CheckpointError: the library cannot make the model, or cannot convert the tensors.
    """
    told: dict[str, Any]
    load: Any = kind.from_pretrained
    try:
        with _quiet(), FakeTensorMode(allow_non_fake_inputs=True):
            bare = {name: torch.empty(tensor.shape) for name, tensor in stored.items()}
            model, told = load(
                None,
                config=config,
                state_dict=bare,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
            )
            names = list(model.state_dict())
    except Exception as error:  # each model of the library raises its own errors
        why = _first_line(error)
        raise CheckpointError(f"the weights do not make a {kind.__name__}: {why}") from error
    unmatched = _within_layers(told["unexpected_keys"], names)
    misshapen = sorted(told["mismatched_keys"])
    return CheckpointReport(
        layout=f"transformers, {kind.__name__}",
        matched=len(stored) - len(told["unexpected_keys"]) - len(misshapen),
        unmatched=unmatched,
        missing=tuple(sorted(told["missing_keys"])),
        misshapen=tuple(f"{n} is {list(has)}, not {list(wants)}" for n, has, wants in misshapen),
        dtypes=Counter(tensor.dtype for tensor in stored.values()),
        faults=type_faults(_weights(config, stored)),
    )


def lacking_tokenizer(folder: Path) -> tuple[str, ...]:
    """Return which files of a tokenizer are missing, in words."""
    if tokenizer_files(folder):
        return ()
    return (f"a tokenizer ({', '.join(TOKENIZERS)})",)


def tokenizer_files(folder: Path) -> tuple[Path, ...]:
    """Return the files that contain a tokenizer's vocabulary."""
    return tuple(sorted({path for pattern in TOKENIZERS for path in folder.glob(pattern)}))


def read_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Load a tokenizer; nothing is downloaded, and no code of the folder runs.

    Raises:
        CheckpointError: there is none, its files cannot be read, or it needs code of its own.
    """
    if without := lacking_tokenizer(folder):  # the library would make one with an empty vocabulary
        raise CheckpointError(f"{folder} is missing {without[0]}")
    for path in (*tokenizer_files(folder), *sorted(folder.glob("tokenizer*.json"))):
        refuse_stand_in(path)
        if path.suffix == ".json":
            _require_json(path)
    read: Any = AutoTokenizer.from_pretrained
    try:
        with _quiet():
            tokenizer: PreTrainedTokenizerBase = read(
                folder, local_files_only=True, trust_remote_code=False
            )
    except Exception as error:  # the library's readers raise anything for other files
        why = _first_line(error)
        if "trust_remote_code" in str(error):
            why = "it needs its own code (auto_map), and code of a checkpoint is not run"
        raise CheckpointError(f"the tokenizer in {folder} cannot be read: {why}") from error
    return tokenizer


def require_words_fit(folder: Path, tokenizer: PreTrainedTokenizerBase, words: int) -> None:
    """Refuse a tokenizer with a larger vocabulary than the model.

    Added tokens are not checked, because many models never produce them.

    Raises:
        CheckpointError: it belongs to another model.
    """
    if tokenizer.vocab_size > words:
        raise CheckpointError(
            f"the tokenizer in {folder} belongs to another model: it has {tokenizer.vocab_size} "
            f"tokens, and the model has {words}"
        )


def _weights(config: Any, stored: Mapping[str, StoredTensor]) -> dict[str, str]:
    """Return the types of tensors that the library would cast, but not of those that it unpacks."""
    if getattr(config, "quantization_config", None) is not None:
        return {}
    return {name: t.dtype for name, t in stored.items() if name.endswith(".weight")}


def _within_layers(unexpected: set[str], names: list[str]) -> tuple[str, ...]:
    """Return the names that belong to layers of the model but do not match any tensor there.

    Other unexpected names are parts of a larger model (for pictures, a decoder) that this one does
    not need.
    """
    layers = {match[1] for name in names if (match := _LAYER.match(name))}
    return tuple(
        name
        for name in sorted(unexpected)
        if (match := _LAYER.match(name)) and match[1] in layers and not name.endswith(_COMPUTED)
    )


def _require_json(path: Path) -> None:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is incomplete or not JSON: {error}") from error


def _first_line(error: Exception) -> str:
    line = str(error).strip().partition("\n")[0]
    return line or type(error).__name__


@contextmanager
def _quiet() -> Iterator[None]:
    """Make the library load on this thread without logging: the report has its messages."""
    before, level = os.environ.get(_ONE_THREAD), _log.get_verbosity()
    bars = _log.is_progress_bar_enabled()
    os.environ[_ONE_THREAD] = "1"
    _log.set_verbosity(logging.CRITICAL)
    _log.disable_progress_bar()
    try:
        yield
    finally:
        _log.set_verbosity(level)
        if bars:
            _log.enable_progress_bar()
        if before is None:
            del os.environ[_ONE_THREAD]
        else:
            os.environ[_ONE_THREAD] = before
