"""What causal Wan is, and how it is loaded.

    reverie models check DIR                           does it fit?
    reverie serve --model wan --checkpoint DIR         see loading.py for what the folder holds
    reverie serve --model wan --checkpoint random      tiny random weights: noise, to try paths

The heavy libraries of the extra `wan` are imported when a model is loaded, not before.
"""

import importlib
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from reverie.models.contract.blocks import BlockPool
from reverie.models.contract.controls import Merge, ParameterSpec
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import LoopKernel
from reverie.models.contract.spec import (
    CacheSpec,
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    InputSpec,
    Lead,
    LoopSpec,
    ModelSpec,
    ParallelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)
from reverie.models.services.attention_choice import attention_of, block_attention_of
from reverie.models.services.capacity import room_for
from reverie.models.services.checkpoint_report import CheckpointReport
from reverie.models.services.guidance.select import GuidanceFactory, guidance_of
from reverie.models.services.weight_files import CheckpointPaths
from reverie.models.wan.checkpoint.loras import check as check_lora
from reverie.models.wan.components import WanComponents
from reverie.models.wan.config import (
    CELL_PX,
    GRID,
    LONGLIVE,
    T2V_1_3B,
    T2V_14B,
    CausalConfig,
    WanConfig,
)
from reverie.models.wan.guidance import SPACE, in_one_batch
from reverie.models.wan.input_frames import CAMERA_PICTURES, CLIP_PICTURES
from reverie.models.wan.kernel import WanKernel
from reverie.models.wan.network.fast_decoder import check as check_decoder
from reverie.models.wan.network.fast_decoder import holds_fast_decoder
from reverie.models.wan.prompts import WanPrompts
from reverie.models.wan.restyle import WanRestyleKernel
from reverie.models.wan.state import OnPrompt
from reverie.models.wan.state_size import StateSize

if TYPE_CHECKING:
    from reverie.models.wan.checkpoint.contents import CheckpointContents
    from reverie.models.wan.checkpoint.loading import LoadedWan

RATE_HZ = 16.0
LEAD = Lead(most_ms=3000)
"""A chunk is three quarters of a second, and two have to be under way on any line."""
HALF_BYTES = 2
"""Of a number in the precision that the published weights are served in."""
FRAMES_A_LATENT = 4
FAST_DECODER = "taehv"

ON_PROMPT = ParameterSpec(
    "on_prompt",
    int(OnPrompt.FINISH),
    int(OnPrompt.WAIT),
    int(OnPrompt.RESTART),
    integer=True,
    label="A new prompt or LoRA: 0 waits for the next chunk, 1 finishes this one, 2 restarts it",
)


GUIDANCE = ParameterSpec("guidance", 1.0, 1.0, 10.0, label="Weight of the prompt; 1 as distilled")
PAST_GUIDANCE = ParameterSpec("past_guidance", 1.0, 0.0, 4.0, label="Weight of what was shown")
STRENGTH = ParameterSpec("strength", 0.7, 0.0, 1.0, label="How much is repainted")

_CAN = frozenset(
    {
        Capability.TEXT_PROMPT,
        Capability.REWIND,
        Capability.FORK,
        Capability.DURABLE,
        Capability.BATCH,
    }
)


def wan_spec(
    config: WanConfig,
    causal: CausalConfig,
    grid: tuple[int, int],
    name: str = "wan",
    adapters: tuple[ParameterSpec, ...] = (),
) -> ModelSpec:
    """Describe a causal Wan of these sizes, with the parameters of its adapters."""
    tokens = (grid[0] // config.patch) * (grid[1] // config.patch)
    # Weights that are told the scale have no branch without their past.
    guided = (GUIDANCE,) if config.takes_guidance else (GUIDANCE, PAST_GUIDANCE)
    block = (2, config.num_layers, tokens, config.num_heads, config.head_size)
    width, height = grid[1] * CELL_PX, grid[0] * CELL_PX
    size = StateSize.of(config, causal, width * height, CELL_PX, HALF_BYTES)
    continuation = LoopSpec(
        name="video_continuation",
        components=("transformer", "vae", "text"),
        streams=(StreamSpec("video", StreamKind.VIDEO, width, height, RATE_HZ),),
        parameters=(ON_PROMPT, *guided, *adapters),
        chunk_frames=causal.block * FRAMES_A_LATENT,
        window_blocks=math.ceil(causal.local / causal.block) * causal.block,  # whole chunks
        chunk_blocks=causal.block,
        rebuild_blocks=causal.local if causal.recache or adapters else 0,
        prompt_tokens=config.text_len,
        inputs=(_pictures("clip", Merge.FIFO, CLIP_PICTURES, width, height, "Picture or clip"),),
        caches=("frames",),
        state_bytes=size.newest + size.features,
        chunk_bytes=size.features + size.latents,
    )
    restyle = replace(
        continuation,
        name="restyle",
        parameters=(ON_PROMPT, STRENGTH, *guided, *adapters),
        inputs=(_pictures("camera", Merge.LATEST, CAMERA_PICTURES, width, height, "Camera"),),
    )
    return ModelSpec(
        name=name,
        title="Causal Wan: video made block by block from text (Self-Forcing, LongLive)",
        licence="Apache-2.0",
        components=(
            ComponentSpec("transformer", "causal diffusion transformer", adaptable=True),
            ComponentSpec("vae", "latents to pictures and back", decoders=(FAST_DECODER,)),
            ComponentSpec("text", "umT5 prompt encoder", adaptable=True),
        ),
        loops=(continuation, restyle),
        programs=(
            ProgramSpec("continuation", (continuation.name,), LEAD),
            ProgramSpec("restyle", (restyle.name,), LEAD),
        ),
        capabilities=CapabilityMatrix({continuation.name: _CAN, restyle.name: _CAN}),
        precisions=("float32", "bfloat16"),
        caches=(
            CacheSpec("frames", (continuation.name, restyle.name), ("context", "recache"), block),
        ),
        parallel=ParallelSpec(tensor=config.num_heads, sequence=tokens),
        guided=True,
        has_parts=True,
    )


def _pictures(
    name: str, merge: Merge, capacity: int, width: int, height: int, label: str
) -> InputSpec:
    return InputSpec(name, StreamKind.VIDEO, merge, capacity, width, height, RATE_HZ, label=label)


class Wan:
    """The family behind the entry point `wan`."""

    spec = wan_spec(T2V_1_3B, LONGLIVE, GRID)
    variants: Mapping[str, ModelSpec] = MappingProxyType(
        {"1.3B": spec, "14B": wan_spec(T2V_14B, LONGLIVE, GRID)}
    )

    def __init__(self) -> None:
        self._components: dict[str, WanComponents] = {}
        self._policies: dict[str, GuidanceFactory] = {}

    def load(self, options: LoadOptions) -> ModelInstance:
        """Load what `options.checkpoint` names.

        Raises:
            CheckpointError: no checkpoint is named, a file is missing or does not fit, or the extra
                `wan` is not installed.
            OptionError: there is no such device, precision, attention or guidance.
        """
        if options.checkpoint is None:
            raise CheckpointError(
                "wan has no weights of its own: name a folder as checkpoint, or `random`"
            )
        loaded: LoadedWan = _module("checkpoint.loading").load_components(options)
        instance = assemble(loaded.components, loaded.version, options)
        self._components[instance.name] = loaded.components
        takes_scale = loaded.components.transformer.config.takes_guidance
        policy_for = guidance_of(options, SPACE, takes_scale=takes_scale, model="wan")
        self._policies[instance.name] = policy_for
        if instance.prepare_prompt is not None:
            instance.prepare_prompt("", {})  # guidance asks for it within a denoise call
        return instance

    def kernel(self, loop: str, instance: ModelInstance) -> LoopKernel[Any]:
        """Return the kernel of one of the loops."""
        kernel = WanRestyleKernel if loop == "restyle" else WanKernel
        components = self._components[instance.name]
        policy_for = self._policies.get(instance.name, in_one_batch)
        return kernel(instance.spec.loop(loop), components, instance, policy_for)

    def check(self, path: str, parts: str | None = None) -> CheckpointReport:
        """Look at every part of a checkpoint, without reading its weights.

        Args:
            path: a folder, or the file of the transformer.
            parts: the folder of the other parts; None: they are next to it.

        Raises:
            CheckpointError: there is none in a known layout, or the extra `wan` is not installed.
        """
        if holds_fast_decoder(Path(path)):
            return check_decoder(Path(path))
        found: CheckpointContents = _module("checkpoint.contents").check_checkpoint(
            CheckpointPaths.of(path, parts)
        )
        return found.report

    def check_adapter(
        self, path: str, base: str | None, adapter: str | None = None
    ) -> CheckpointReport:
        """Compare a LoRA with the transformer that it is for, without reading its weights.

        Args:
            path: a file or a folder.
            base: the checkpoint that it is for; None: the published sizes.
            adapter: which one to take of a file with several.

        Raises:
            CheckpointError: one of them cannot be read.
        """
        config = None
        if base is not None:
            config = _module("checkpoint.contents").find_transformer(Path(base)).config
        return check_lora(Path(path), config, adapter)


def assemble(components: WanComponents, version: str, options: LoadOptions) -> ModelInstance:
    """Put an instance together; its cache pool holds as many sessions as were asked for."""
    config = components.transformer.config
    spec = wan_spec(
        config, components.causal, components.grid, adapters=components.adapters.parameters
    )
    weight = next(components.transformer.parameters())
    components.transformer.attend_with(
        attention_of(options, weight.device, weight.dtype, tables=True),
        block_attention_of(options, weight.device, weight.dtype),
    )
    room = room_for(spec, options, weight.device, weight.dtype)
    blocks = room.sessions * spec.blocks_a_session(room.history_chunks)
    instance = ModelInstance(
        name="wan",
        spec=spec,
        device=weight.device,
        dtype=weight.dtype,
        weights_version=version,
        components={"transformer": components.transformer},
        blocks=BlockPool(blocks, spec.caches[0].shape, weight.dtype, weight.device),
        prompt_parameters=frozenset(spec.name for spec in components.adapters.parameters),
        room=room,
    )
    prompts = WanPrompts(components, instance)
    instance.prepare_prompt, instance.knows_prompt = prompts.prepare, prompts.knows
    return instance


def _module(name: str) -> ModuleType:
    """Import a module that needs the libraries of the extra."""
    try:
        return importlib.import_module(f"reverie.models.wan.{name}")
    except ImportError as error:
        why = "wan needs the extra `wan`: pip install '.[wan]' in a checkout of reverie"
        raise CheckpointError(f"{why} ({error})") from error
