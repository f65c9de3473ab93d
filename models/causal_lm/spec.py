"""The language model family: its description, and how it is loaded.

    reverie serve --model causal_lm --checkpoint DIR      a folder as transformers saves it reverie
    serve --model causal_lm --checkpoint random   tiny random weights: babble, to try the server

The library is imported when a model is loaded, not before.
"""

import importlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from reverie.models.causal_lm.config import (
    COMPONENT,
    CONTEXT,
    GROWTH,
    PAGE_TOKENS,
    SPARE_TOKENS,
)
from reverie.models.contract.blocks import BlockPool
from reverie.models.contract.controls import ParameterSpec
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import LoopKernel
from reverie.models.contract.spec import (
    CacheSpec,
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    LoopSpec,
    ModelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)
from reverie.models.services.capacity import room_for
from reverie.models.services.checkpoint_report import CheckpointReport

if TYPE_CHECKING:
    from reverie.models.causal_lm.checkpoint.loading import LoadedChat

PARAMETERS = (
    ParameterSpec("temperature", 0.0, 0.0, 4.0, label="Temperature: 0 is the likeliest"),
    ParameterSpec("top_p", 1.0, 0.01, 1.0, label="Top p"),
    ParameterSpec("top_k", 0, 0, 1_000_000, integer=True, label="Top k: 0 is all"),
    ParameterSpec("min_p", 0.0, 0.0, 1.0, label="Min p: of the likeliest's share; 0 is all"),
    ParameterSpec(
        "repetition_penalty",
        1.0,
        0.5,
        2.0,
        label="Repetition penalty: 1 is none",
    ),
    ParameterSpec("longest", 256, 1, 4096, integer=True, label="Longest answer in tokens"),
)

CAPABILITIES = frozenset(
    {Capability.TEXT_PROMPT, Capability.REWIND, Capability.FORK, Capability.DURABLE}
)


def chat_spec(
    context: int,
    page: tuple[int, ...] = (),
    adapters: tuple[ParameterSpec, ...] = (),
    defaults: Mapping[str, float] | None = None,
    token_bytes: int = 0,
) -> ModelSpec:
    """Describe a language model that attends to `context` tokens.

    Args:
        context: tokens, whole pages.
        page: shape of a cache block; empty before a model is loaded.
        adapters: parameters of the LoRAs that sessions can choose.
        defaults: values that the checkpoint asks for, in place of the family's.
        token_bytes: size of a token in the working cache, which is held besides the pages.
    """
    parameters = [_with_default(each, defaults or {}, context) for each in PARAMETERS]
    loop = LoopSpec(
        name="ar_decode",
        components=(COMPONENT,),
        streams=(StreamSpec("text", StreamKind.TEXT),),
        parameters=(*parameters, *adapters),
        window_blocks=context // PAGE_TOKENS,
        chunk_blocks=1,
        rebuild_blocks=context
        // PAGE_TOKENS,  # when the oldest message is dropped, the rest is read again
        prompt_tokens=context,
        takes_turns=True,
        caches=("conversation",),
        state_bytes=token_bytes * (context + context // GROWTH + SPARE_TOKENS),
    )
    return ModelSpec(
        name="causal_lm",
        title="A decoder-only language model of the transformers library",
        licence="Apache-2.0",
        components=(ComponentSpec(COMPONENT, "decoder-only transformer", adaptable=True),),
        loops=(loop,),
        programs=(ProgramSpec("chat", ("ar_decode",)),),
        capabilities=CapabilityMatrix({"ar_decode": CAPABILITIES}),
        precisions=("float32", "bfloat16"),
        caches=(CacheSpec("conversation", ("ar_decode",), ("prefill", "decode_token"), page),),
        weights_licence="as each model's own card says",
        context_option=True,
    )


def _with_default(
    spec: ParameterSpec, defaults: Mapping[str, float], context: int
) -> ParameterSpec:
    """Return a parameter with the checkpoint's default, limited to its range."""
    high = max(spec.high, context) if spec.name == "longest" else spec.high
    value = min(max(defaults.get(spec.name, spec.default), spec.low), high)
    return replace(spec, default=value, high=high)


class CausalLm:
    """The family behind the entry point `causal_lm`."""

    spec = chat_spec(CONTEXT)

    def __init__(self) -> None:
        self._loaded: dict[str, LoadedChat] = {}

    def load(self, options: LoadOptions) -> ModelInstance:
        """Load the model that `options.checkpoint` names.

        Raises:
            CheckpointError: none is named, it cannot be read, it is not a decoder-only model, or
                the library transformers is not installed.
        """
        if options.checkpoint is None:
            raise CheckpointError(
                "causal_lm ships no weights: set checkpoint to a folder, or to `random`"
            )
        loaded: LoadedChat = _module("checkpoint.loading").load_chat(options)
        spec = loaded.spec
        room = room_for(spec, options, loaded.device, loaded.dtype)
        instance = ModelInstance(
            name="causal_lm",
            spec=spec,
            device=loaded.device,
            dtype=loaded.dtype,
            weights_version=loaded.version,
            components={COMPONENT: loaded.components.model},
            blocks=BlockPool(
                room.sessions * spec.blocks_a_session(room.history_chunks),
                (PAGE_TOKENS, loaded.components.layout.width),
                loaded.dtype,
                loaded.device,
            ),
            room=room,
        )
        self._loaded[instance.name] = loaded
        return instance

    def check(self, path: str) -> CheckpointReport:
        """Compare a folder with the language model that it describes; no weights are read.

        Whether it has a plain key/value cache is known only once it is loaded.

        Raises:
            CheckpointError: it is not one, or the extra `lm` is not installed.
        """
        report: CheckpointReport = _module("checkpoint.contents").check(Path(path))
        return report

    def check_adapter(
        self, path: str, base: str | None, adapter: str | None = None
    ) -> CheckpointReport:
        """Compare a LoRA with the language model that it is for; no weights are read.

        Args:
            path: a file, or a folder of peft's.
            base: the folder of that model.
            adapter: which one to take of a file with several.

        Raises:
            CheckpointError: one of them cannot be read, or no model is named.
        """
        report: CheckpointReport = _module("checkpoint.loras").check(Path(path), base, adapter)
        return report

    def kernel(self, loop: str, instance: ModelInstance) -> LoopKernel[Any]:
        """Return the kernel of `ar_decode`, the one loop."""
        from reverie.models.causal_lm.kernel import ChatKernel

        components = self._loaded[instance.name].components
        return ChatKernel(instance.spec.loop(loop), components, instance)


def _module(name: str) -> ModuleType:
    """Import a module that needs the library."""
    try:
        return importlib.import_module(f"reverie.models.causal_lm.{name}")
    except ImportError as error:
        why = "causal_lm needs the extra `lm`: run pip install '.[lm]' in a checkout of reverie"
        raise CheckpointError(f"{why} ({error})") from error
