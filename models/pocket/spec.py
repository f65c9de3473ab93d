"""The specification of pocket, and how its weights are loaded."""

from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from reverie.models.contract.blocks import BlockPool
from reverie.models.contract.controls import ControlSpec, Merge, ParameterRole, ParameterSpec
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import STEPS, LoadOptions, ModelInstance
from reverie.models.contract.loop import LoopKernel
from reverie.models.contract.spec import (
    CacheSpec,
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    InputSpec,
    LoopSpec,
    ModelSpec,
    ParallelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)
from reverie.models.pocket.calibration import Networks, calibrated
from reverie.models.pocket.checkpoint import SHIPPED_WEIGHTS, check_pocket, load_pocket
from reverie.models.pocket.config import WorldConfig
from reverie.models.pocket.narrator.kernel import NarratorKernel
from reverie.models.pocket.narrator.units import STREAM as NARRATION
from reverie.models.pocket.network.frame_pass import freeze
from reverie.models.pocket.network.networks import PocketNets, fast_attention, fast_dtype
from reverie.models.pocket.network.sampler import MAX_STEPS
from reverie.models.pocket.network.vocabulary import MAX_TOKENS
from reverie.models.pocket.simulator.simulator import FRAME_PX
from reverie.models.pocket.world import continuation, restyle
from reverie.models.pocket.world.actions import MOVES
from reverie.models.pocket.world.continuation import ContinuationKernel
from reverie.models.pocket.world.kernel import PocketKernel
from reverie.models.pocket.world.restyle import PocketRestyleKernel
from reverie.models.pocket.world.state import PocketPhase
from reverie.models.services.attention_choice import attention_of
from reverie.models.services.checkpoint_report import CheckpointReport
from reverie.models.services.guidance.policies import CombineSpace
from reverie.models.services.guidance.select import GuidanceFactory, guidance_of
from reverie.models.services.placement import device_of, name_of, precision_of, type_of

WINDOW = 6
"""Frames that attention sees, with the one in progress."""
RATE_HZ = 12.0
DEFAULT_STEPS = 3
MAX_GUIDANCE = 4.0
DEFAULT_PACE = 8.0
"""Words a second: about as fast as people read."""

_SIZES = WorldConfig()


def block_shape(world: WorldConfig) -> tuple[int, ...]:
    """Return the shape of a cache block: a frame's keys and values in every layer."""
    return (2, world.layers, world.heads, world.tokens, world.head_size)


WORLD_MODEL = LoopSpec(
    name="world_model",
    components=("world", "codec", "text"),
    streams=(StreamSpec("video", StreamKind.VIDEO, FRAME_PX, FRAME_PX, RATE_HZ),),
    controls=(ControlSpec("move", Merge.EDGES, keys=MOVES, label="Walk"),),
    parameters=(
        ParameterSpec("steps", DEFAULT_STEPS, 1, MAX_STEPS, integer=True, label="Denoise steps"),
        ParameterSpec("guidance", 1.0, 1.0, MAX_GUIDANCE, label="Weight of the prompt"),
    ),
    window_blocks=WINDOW - 1,
    chunk_blocks=1,
    prompt_tokens=MAX_TOKENS,
    caches=("world",),
    # The window as attention reads it, with room for the frame in progress, and its latents.
    state_bytes=4 * WINDOW * (prod(block_shape(_SIZES)) + 2 * _SIZES.cells),
    chunk_bytes=4 * _SIZES.cells,
    example_prompts=(
        "a frozen lake land at night",
        "neon city after dark",
        "rivers of lava at dusk",
        "sandy desert at noon",
        "autumn forest at sunset",
        "candy land in the morning",
    ),
)

CONTINUATION = replace(
    WORLD_MODEL,
    name="video_continuation",
    inputs=(
        InputSpec(
            continuation.STREAM,
            StreamKind.VIDEO,
            Merge.FIFO,
            continuation.CLIP_FRAMES,
            FRAME_PX,
            FRAME_PX,
            RATE_HZ,
            label="Picture or clip",
        ),
    ),
)

RESTYLE = replace(
    WORLD_MODEL,
    name="restyle",
    controls=(),
    parameters=(
        *WORLD_MODEL.parameters,
        ParameterSpec("strength", 0.7, 0.05, 1.0, label="How much is repainted"),
    ),
    inputs=(
        InputSpec(
            restyle.STREAM,
            StreamKind.VIDEO,
            Merge.LATEST,
            1,
            FRAME_PX,
            FRAME_PX,
            RATE_HZ,
            label="Camera",
        ),
    ),
)

_PLAYED = frozenset(
    {
        Capability.TEXT_PROMPT,
        Capability.ACTIONS,
        Capability.REWIND,
        Capability.FORK,
        Capability.DURABLE,
        Capability.BATCH,
    }
)

AR_DECODE = LoopSpec(
    name="ar_decode",
    components=("world", "narrator"),
    streams=(StreamSpec(NARRATION, StreamKind.TEXT),),
    parameters=(
        ParameterSpec("narrate", 1.0, 0.0, 1.0, integer=True, label="Narrate", stream=NARRATION),
        ParameterSpec(
            "pace",
            DEFAULT_PACE,
            0.0,
            100.0,
            label="Words a second; 0: no limit",
            role=ParameterRole.PACE,
        ),
        ParameterSpec(
            "barge_in",
            0.0,
            0.0,
            1.0,
            integer=True,
            label="Stop when spoken to",
            role=ParameterRole.BARGE_IN,
        ),
    ),
    window_blocks=WINDOW - 1,
    chunk_blocks=1,
    inputs=(
        InputSpec(
            "microphone", StreamKind.AUDIO, Merge.FIFO, 0, rate_hz=16_000, label="Microphone"
        ),
    ),
    reads=("world_model",),
    takes_turns=True,
    caches=("world",),
    example_turns=("Where is the water?",),
)

POCKET = ModelSpec(
    name="pocket",
    title="Pocket: a small world seen from above",
    licence="Apache-2.0",
    components=(
        ComponentSpec("world", "block-causal transformer over frames"),
        ComponentSpec("codec", "pictures to latents and back"),
        ComponentSpec("text", "prompt encoder"),
        ComponentSpec("narrator", "words for what the transformer sees"),
    ),
    loops=(WORLD_MODEL, AR_DECODE, CONTINUATION, RESTYLE),
    programs=(
        ProgramSpec("world", ("world_model",)),
        ProgramSpec("narrated_world", ("world_model", "ar_decode")),
        ProgramSpec("chat", ("world_model", "ar_decode"), parameters={"narrate": 0.0}),
        ProgramSpec("continuation", ("video_continuation",)),
        ProgramSpec("restyle", ("restyle",)),
    ),
    capabilities=CapabilityMatrix(
        {
            "world_model": _PLAYED,
            "ar_decode": frozenset({Capability.DURABLE, Capability.BATCH, Capability.FORK}),
            "video_continuation": _PLAYED,
            "restyle": _PLAYED - {Capability.ACTIONS},
        }
    ),
    precisions=("float32", "bfloat16"),
    guided=True,
    caches=(
        CacheSpec(
            "world",
            producers=(WORLD_MODEL.name, CONTINUATION.name, RESTYLE.name),
            units=(PocketPhase.CONTEXT.value,),
            shape=block_shape(_SIZES),
        ),
    ),
    parallel=ParallelSpec(tensor=_SIZES.heads, sequence=_SIZES.tokens),
    weights_licence="Apache-2.0, shipped",
)


_KERNELS: dict[str, type[PocketKernel]] = {
    WORLD_MODEL.name: PocketKernel,
    CONTINUATION.name: ContinuationKernel,
    RESTYLE.name: PocketRestyleKernel,
}


_AS_USUAL = LoadOptions()


class Pocket:
    """The model family of the entry point `pocket`."""

    spec = POCKET

    def __init__(self) -> None:
        self._nets: dict[str, PocketNets] = {}
        self._policies: dict[str, GuidanceFactory] = {}

    def load(self, options: LoadOptions) -> ModelInstance:
        """Load the shipped weights, or those at `options.checkpoint`.

        Raises:
            CheckpointError: the file is missing or does not fit.
            OptionError: the device, precision, attention or guidance does not exist.
        """
        device = device_of(options)
        dtype = precision_of(options, self.spec.precisions, fast_dtype(device), "pocket")
        speed = None
        if options.calibration_s and device.type == "cpu":
            choice = calibrated(options, self.spec, name_of(dtype), _networks(options, device))
            nets, speed = choice.nets, choice.speed
        else:
            nets = _networks(options, device)(name_of(dtype))
        takes_scale = nets.world.config.takes_guidance
        policy_for = guidance_of(
            options, CombineSpace.CLEAN, takes_scale=takes_scale, model="pocket"
        )
        instance = instance_of(nets, options.sessions, options.history_chunks, options)
        if speed is not None:
            instance.spec = replace(POCKET.with_default(STEPS, speed.steps), speed=speed)
        self._policies[instance.name] = policy_for
        self._nets[instance.name] = nets
        return instance

    def check(self, path: str) -> CheckpointReport:
        """Compare a weights file with the networks that it describes.

        Raises:
            CheckpointError: the file is not a weights file.
        """
        return check_pocket(Path(path), WINDOW)

    def kernel(self, loop: str, instance: ModelInstance) -> LoopKernel[Any]:
        """Return the kernel of one of the loops."""
        nets, spec = self._nets[instance.name], self.spec.loop(loop)
        if loop == AR_DECODE.name:
            return NarratorKernel(spec, nets, instance)
        return _KERNELS[loop](spec, nets, instance, self._policies[instance.name])


def instance_of(
    nets: PocketNets, sessions: int, history_chunks: int, options: LoadOptions = _AS_USUAL
) -> ModelInstance:
    """Return an instance of loaded networks, with cache blocks for a number of sessions.

    Args:
        options: only the choice of attention is read.

    Raises:
        OptionError: the attention backend does not exist, or does not run on this device.
    """
    world = nets.world.config
    _attend(nets, options)
    return ModelInstance(
        name="pocket",
        spec=POCKET,
        device=nets.device,
        dtype=nets.dtype,
        weights_version=nets.version,
        components={
            "world": nets.world,
            "codec": nets.codec,
            "text": nets.text,
            "narrator": nets.narrator,
        },
        blocks=BlockPool(
            sessions * POCKET.blocks_a_session(history_chunks),
            block_shape(world),
            nets.dtype,
            nets.device,
        ),
    )


def _networks(options: LoadOptions, device: torch.device) -> Networks:
    """Return what loads the networks in a precision, ready to be timed as they are served."""

    def load(precision: str) -> PocketNets:
        nets = _load(options.checkpoint, device, type_of(precision))
        _attend(nets, options)
        if device.type == "cpu":  # elsewhere it has not been measured
            freeze(nets.world)
        return nets

    return load


def _attend(nets: PocketNets, options: LoadOptions) -> None:
    fast = fast_attention(nets.device, nets.dtype)
    nets.world.attend_with(attention_of(options, nets.device, nets.dtype, fast=fast))


def _load(checkpoint: str | None, device: torch.device, dtype: torch.dtype) -> PocketNets:
    path = SHIPPED_WEIGHTS if checkpoint is None else Path(checkpoint)
    try:
        check_pocket(path, WINDOW).require_fit()
        return load_pocket(path, device, dtype)
    except CheckpointError as error:
        raise CheckpointError(f"cannot load pocket: {error}") from error
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        why = str(error).partition("\n")[0]
        raise CheckpointError(f"cannot load pocket from {path}: {why}") from error
