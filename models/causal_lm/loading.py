"""From a checkpoint's name to a model that speaks."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from reverie.kernels.attention import AUTO
from reverie.models.adapters import NONE_FITTED, Fitted
from reverie.models.causal_lm import loras
from reverie.models.causal_lm.conversation import Conversation
from reverie.models.causal_lm.folders import require_tokenizer
from reverie.models.causal_lm.kernel import Speaker
from reverie.models.causal_lm.layout import probed
from reverie.models.causal_lm.spec import CONTEXT, PAGE_TOKENS, RANDOM
from reverie.models.checkpoints import SHOWN
from reverie.models.errors import CheckpointError, OptionError
from reverie.models.instance import LoadOptions
from reverie.models.placement import device_of, half_on_cuda, precision_of

_ATTENTION = {AUTO: None, "plain": "eager", "sdpa": "sdpa", "flash": "flash_attention_2"}
"""What the library calls the backends."""


@dataclass(frozen=True, slots=True)
class LoadedSpeaker:
    """A model that speaks.

    Attributes:
        context: tokens that it attends to at most, whole pages.
    """

    speaker: Speaker
    version: str
    context: int
    device: torch.device
    dtype: torch.dtype


def load_speaker(options: LoadOptions) -> LoadedSpeaker:
    """Load a folder as transformers saves it; nothing is downloaded, and no code of it runs.

    Raises:
        CheckpointError: it cannot be read, or is no decoder-only model with a plain cache.
        OptionError: there is no such device or precision.
    """
    device = device_of(options)
    dtype = precision_of(options, ("float32", "bfloat16"), half_on_cuda(device), "causal_lm")
    attention = options.attention
    if attention not in _ATTENTION:
        raise OptionError(f"attention: causal_lm has {', '.join(_ATTENTION)}, not {attention!r}")
    if options.checkpoint == RANDOM:
        model, tokenizer = random_model()
        fitted = loras.fit(options.adapters, model)
        return speaker_of(model, tokenizer, "random", device, torch.float32, attention, fitted)
    folder = Path(options.checkpoint or "")
    model, tokenizer = _read(folder, dtype)
    version = version_of(folder)
    torch.nn.Module.to(model, device=device, dtype=dtype)
    fitted = loras.fit(options.adapters, model)
    return speaker_of(model, tokenizer, version, device, dtype, attention, fitted)


def _read(folder: Path, dtype: torch.dtype) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: no such folder")
    require_tokenizer(folder)
    read: Any = AutoModelForCausalLM.from_pretrained
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model, about = read(
            folder,
            local_files_only=True,
            use_safetensors=True,
            dtype=dtype,
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise CheckpointError(f"cannot load {folder}: {error}") from error
    if missing := sorted(about["missing_keys"]):  # the library would make them up
        raise CheckpointError(f"{folder} lacks weights: {', '.join(missing[:SHOWN])}")
    return model, tokenizer


def version_of(folder: Path) -> str:
    """Return a name for what a folder holds, from its files' names, sizes and times."""
    digest = blake2b(digest_size=8)
    for path in sorted(folder.iterdir()):
        about = path.stat()
        digest.update(f"{path.name}/{about.st_size}/{about.st_mtime_ns}".encode())
    return f"{folder.name}-{digest.hexdigest()}"


def speaker_of(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    version: str,
    device: torch.device,
    dtype: torch.dtype,
    attention: str = AUTO,
    fitted: Fitted = NONE_FITTED,
) -> LoadedSpeaker:
    """Let a loaded model speak.

    Args:
        attention: a backend, by the name that it has in `kernels`.
        fitted: its adapters.

    Raises:
        CheckpointError: it keeps no plain key/value cache.
        OptionError: it cannot attend so, here.
    """
    config = model.config.get_text_config()
    # Models whose positions have no end name no longest one.
    longest = getattr(config, "max_position_embeddings", None) or CONTEXT
    context = min(CONTEXT, longest) // PAGE_TOKENS * PAGE_TOKENS
    _attend_with(model, attention)
    torch.nn.Module.to(model, device=device, dtype=dtype)
    torch.nn.Module.train(model, mode=False)
    model.requires_grad_(False)
    ends, stops = _ends(model, tokenizer)
    return LoadedSpeaker(
        Speaker(model, Conversation(tokenizer, context), probed(model), ends, stops, fitted.beside),
        fitted.version(version),
        context,
        device,
        dtype,
    )


def _attend_with(model: PreTrainedModel, attention: str) -> None:
    """Have the library attend by another of its own backends: it owns the model's attention."""
    if (name := _ATTENTION[attention]) is None:
        return
    try:
        model.set_attn_implementation(name)
    except (ImportError, ValueError) as error:
        raise OptionError(f"attention: {attention!r} cannot run here: {error}") from error


def random_model(seed: int = 0) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Make a tiny Llama that has learnt nothing and speaks in bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {sign: number for number, sign in enumerate([*alphabet, "<end>"])}
    words = Tokenizer(models.BPE(vocabulary, []))
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    make: Callable[..., PreTrainedTokenizerBase] = PreTrainedTokenizerFast
    tokenizer = make(tokenizer_object=words, eos_token="<end>")
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        eos_token_id=vocabulary["<end>"],
        bos_token_id=None,
        initializer_range=0.5,
    )
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        model = LlamaForCausalLM(config)
    return model, tokenizer


def _ends(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> tuple[frozenset[int], tuple[str, ...]]:
    generation = model.generation_config
    ends = getattr(generation, "eos_token_id", None)
    if ends is None:
        ends = tokenizer.eos_token_id
    ids = [] if ends is None else ends if isinstance(ends, list) else [ends]
    stops = getattr(generation, "stop_strings", None) or ()
    return frozenset(ids), (stops,) if isinstance(stops, str) else tuple(stops)
