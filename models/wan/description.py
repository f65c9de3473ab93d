"""What causal Wan declares: its loops, streams, parameters and memory, by its sizes."""

import math
from dataclasses import replace

from reverie.models.contract.controls import Merge, ParameterSpec
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
from reverie.models.wan.config import (
    CELL_PX,
    CausalConfig,
    WanConfig,
)
from reverie.models.wan.input_frames import CAMERA_PICTURES, CLIP_PICTURES
from reverie.models.wan.state import OnPrompt
from reverie.models.wan.state_size import StateSize

RATE_HZ = 16.0
LEAD = Lead(most_ms=3000)
"""A chunk is three quarters of a second, and on any line two must be on their way."""
HALF_BYTES = 2
"""Bytes of a number in the precision that published weights are served in."""
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


GUIDANCE = ParameterSpec("guidance", 1.0, 1.0, 10.0, label="Weight of the prompt; 1 is no guidance")
PAST_GUIDANCE = ParameterSpec("past_guidance", 1.0, 0.0, 4.0, label="Weight of the past frames")
STRENGTH = ParameterSpec("strength", 0.7, 0.0, 1.0, label="Strength of the repainting")

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
    # Weights that take the scale as an input have no branch without the past.
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
        title="Causal Wan: video from text, block by block (Self-Forcing, LongLive)",
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
