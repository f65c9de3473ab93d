"""Loads a language model from a folder, or makes a random one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from reverie.kernels.attention import AUTO
from reverie.models.causal_lm.cache_layout import probe_layout
from reverie.models.causal_lm.checkpoint import loras
from reverie.models.causal_lm.checkpoint.contents import check
from reverie.models.causal_lm.checkpoint.generation_defaults import (
    GenerationDefaults,
    read_generation_defaults,
)
from reverie.models.causal_lm.components import ChatComponents
from reverie.models.causal_lm.config import PAGE_TOKENS, RANDOM
from reverie.models.causal_lm.context_length import context_for
from reverie.models.causal_lm.conversation import Conversation
from reverie.models.causal_lm.spec import chat_spec
from reverie.models.contract.errors import CheckpointError, OptionError
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.spec import ModelSpec
from reverie.models.services.adapters import NONE_FITTED, FittedAdapters
from reverie.models.services.capacity import free_bytes_of
from reverie.models.services.checkpoint_report import SHOWN
from reverie.models.services.placement import device_of, half_on_cuda, precision_of
from reverie.models.services.transformers_folders import read_tokenizer

_ATTENTION = {AUTO: None, "plain": "eager", "sdpa": "sdpa", "flash": "flash_attention_2"}
"""The library's names of the backends."""


@dataclass(frozen=True, slots=True)
class LoadedChat:
    """A loaded language model.

    Attributes:
        spec: the family's description, with this model's sizes and defaults.
    """

    components: ChatComponents
    version: str
    spec: ModelSpec
    device: torch.device
    dtype: torch.dtype


def load_chat(options: LoadOptions) -> LoadedChat:
    """Load a folder as transformers saves it; nothing is downloaded, and no code in it runs.

    Raises:
        CheckpointError: it cannot be read, or is not a decoder-only model with a plain cache.
        OptionError: the device, precision or attention is not supported.
    """
    device = device_of(options)
    dtype = precision_of(options, ("float32", "bfloat16"), half_on_cuda(device), "causal_lm")
    attention = options.attention
    if attention not in _ATTENTION:
        raise OptionError(
            f"attention: causal_lm supports {', '.join(_ATTENTION)}, not {attention!r}"
        )
    if options.checkpoint == RANDOM:
        model, tokenizer = random_model()
        fitted = loras.fit(options.adapters, model)
        torch.nn.Module.to(model, device=device)
        return chat_of(model, tokenizer, "random", device, options, fitted)
    folder = Path(options.checkpoint or "")
    model, tokenizer = _read(folder, dtype)
    version = version_of(folder)
    torch.nn.Module.to(model, device=device, dtype=dtype)
    fitted = loras.fit(options.adapters, model)
    return chat_of(model, tokenizer, version, device, options, fitted)


def _read(folder: Path, dtype: torch.dtype) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    check(folder).require_fit()
    read: Any = AutoModelForCausalLM.from_pretrained
    tokenizer = read_tokenizer(folder)
    try:
        model, about = read(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=dtype,
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise CheckpointError(f"cannot load {folder}: {error}") from error
    if missing := sorted(about["missing_keys"]):  # the library would draw them at random
        raise CheckpointError(f"{folder} is missing weights: {', '.join(missing[:SHOWN])}")
    return model, tokenizer


def version_of(folder: Path) -> str:
    """Return a version for the content of a folder, from its files' names, sizes and times."""
    digest = blake2b(digest_size=8)
    for path in sorted(folder.iterdir()):
        about = path.stat()
        digest.update(f"{path.name}/{about.st_size}/{about.st_mtime_ns}".encode())
    return f"{folder.name}-{digest.hexdigest()}"


def chat_of(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    version: str,
    device: torch.device,
    options: LoadOptions,
    fitted: FittedAdapters = NONE_FITTED,
) -> LoadedChat:
    """Prepare a loaded model for serving.

    Args:
        model: on its device.
        tokenizer: of the model.
        version: of its weights.
        device: where the model is.
        options: what the operator asks for.
        fitted: its adapters.

    Raises:
        CheckpointError: it has no plain key/value cache.
        OptionError: the attention or the context is not supported here.
    """
    _attend_with(model, options.attention)
    torch.nn.Module.train(model, mode=False)
    model.requires_grad_(False)
    layout, defaults = probe_layout(model), read_generation_defaults(model, tokenizer)
    page = (PAGE_TOKENS, layout.width)
    spec_of = partial(
        chat_spec, page=page, adapters=fitted.selectable.parameters, defaults=_values(defaults),
        token_bytes=layout.width * model.dtype.itemsize,
    )  # fmt: skip
    # Models without a limit of positions do not have this field.
    longest = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    precision = str(model.dtype).removeprefix("torch.")
    context = context_for(longest, options, spec_of, precision, free_bytes_of(device))
    components = ChatComponents(
        model, Conversation(tokenizer, context), layout, defaults.ends, defaults.stops,
        fitted.selectable,
    )  # fmt: skip
    return LoadedChat(components, fitted.version(version), spec_of(context), device, model.dtype)


def _values(defaults: GenerationDefaults) -> dict[str, float]:
    """Return the parameters that a session begins with."""
    return {
        "temperature": defaults.temperature,
        "top_p": defaults.top_p,
        "top_k": defaults.top_k,
        "min_p": defaults.min_p,
        "repetition_penalty": defaults.repetition_penalty,
        "longest": defaults.longest,
    }


def _attend_with(model: PreTrainedModel, attention: str) -> None:
    """Select another attention backend of the library, because it owns the model's attention."""
    if (name := _ATTENTION[attention]) is None:
        return
    try:
        model.set_attn_implementation(name)
    except (ImportError, ValueError) as error:
        raise OptionError(f"attention: {attention!r} cannot run here: {error}") from error


def random_model(seed: int = 0) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Make a tiny Llama with random weights, whose tokens are bytes."""
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
