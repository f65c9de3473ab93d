"""A loaded model: weights, cache pool and encoder cache on one device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reverie.models.contract.blocks import BlockPool
from reverie.models.contract.encoder_cache import EncoderCache
from reverie.models.contract.errors import OptionError
from reverie.models.contract.parallel import ONE_DEVICE, ParallelPlan
from reverie.models.contract.spec import ModelSpec

if TYPE_CHECKING:
    import torch

AUTO = "auto"
STEPS = "steps"
"""The parameter of sessions that says how many denoise steps a picture has."""


@dataclass(frozen=True, slots=True)
class AdapterOption:
    """A LoRA that an operator serves.

    Attributes:
        name: the name of its parameter is `lora_<name>`.
        path: a file, or a folder as peft writes it.
        merged: whether it becomes part of the weights, so that sessions cannot choose.
        strength: of a merged one; else the strength that a session begins with, 0 for none.
        most: the greatest strength that a session can choose.
    """

    name: str
    path: str
    merged: bool = False
    strength: float = 0.0
    most: float = 2.0


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What an operator decides about an instance.

    Attributes:
        device: a torch device; `auto` takes CUDA when there is one.
        precision: one of the spec's precisions; `auto` lets the family choose for the device.
        checkpoint: a path to weights; None takes those that ship.
        parts: the folder of the other files that the weights need; None: it is next to them.
        sessions: the most sessions that the cache pools hold.
        history_chunks: the most chunks that a session can be rewound.
        threads: CPU threads for one step; 0 lets the family choose.
        adapters: LoRAs, merged or for sessions to choose.
        decoder: another decoder of latents than the checkpoint's own, by its kind; empty for none.
        decoder_path: its weights.
        attention: a backend of `kernels`; `auto` lets the family choose for the device.
        guidance: how classifier-free guidance is computed: in one batch, in two passes, ...
            (`models/services/guidance/policies.py`); `auto` lets the family choose.
        game: which game the weights were trained on, for a model of several; `auto` lets the family
            find out.
        parallel: devices to spread the instance over.
        context: tokens that a language model attends to; 0: as many as it can and memory allows.
        steps: denoise steps that sessions begin with; 0 lets the family choose.
        calibration_s: the longest time that the family may measure itself on a CPU, to choose
            `precision`, `threads` and `steps` where they are not set; 0: it uses its defaults.
        workers: of the same server, which share the machine's cores.
    """

    device: str = "auto"
    precision: str = "auto"
    checkpoint: str | None = None
    parts: str | None = None
    sessions: int = 4
    history_chunks: int = 8
    threads: int = 0
    adapters: tuple[AdapterOption, ...] = ()
    decoder: str = ""
    decoder_path: str | None = None
    attention: str = "auto"
    guidance: str = "auto"
    game: str = "auto"
    parallel: ParallelPlan = ONE_DEVICE
    context: int = 0
    steps: int = 0
    calibration_s: float = 0.0
    workers: int = 1


def require_taken(options: LoadOptions, spec: ModelSpec) -> None:
    """Refuse options that a family does not support, before anything of it is loaded.

    Raises:
        OptionError: names the option and the supported values.
    """
    if options.adapters and not any(part.adaptable for part in spec.components):
        raise OptionError(f"adapters: {spec.name} does not support LoRAs")
    decoders = [kind for part in spec.components for kind in part.decoders]
    if options.decoder and options.decoder not in decoders:
        known = f"supports {', '.join(decoders)}" if decoders else "supports only its own"
        raise OptionError(f"decoder: {spec.name} {known}, not {options.decoder!r}")
    if options.decoder_path is not None and not options.decoder:
        raise OptionError("decoder_path is set, but decoder is not")
    if options.parts is not None and not spec.has_parts:
        raise OptionError(f"parts: checkpoints of {spec.name} are in one folder")
    if options.guidance != AUTO and not spec.guided:
        raise OptionError(f"guidance: {spec.name} supports only {AUTO}, not {options.guidance!r}")
    if options.context and not spec.context_option:
        raise OptionError(f"context: only language models support it, and {spec.name} is not one")
    if options.steps:
        _require_steps(options.steps, spec)
    if options.game != AUTO and options.game.lower() not in map(str.lower, spec.games):
        known = ", ".join((AUTO, *spec.games))
        raise OptionError(f"game: {spec.name} supports {known}, not {options.game!r}")
    if options.precision not in (precisions := (AUTO, *spec.precisions)):
        known = ", ".join(precisions)
        raise OptionError(f"precision: {spec.name} supports {known}, not {options.precision!r}")


def _require_steps(steps: int, spec: ModelSpec) -> None:
    known = [each for loop in spec.loops for each in loop.parameters if each.name == STEPS]
    if not known:
        raise OptionError(f"steps: {spec.name} has no denoise steps to choose")
    low, high = max(each.low for each in known), min(each.high for each in known)
    if not low <= steps <= high:
        raise OptionError(f"steps: {spec.name} takes {low:g} to {high:g}, not {steps}")


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """How many sessions run at once, and how many chunks of history each keeps."""

    sessions: int
    history_chunks: int


@dataclass(slots=True)
class ModelInstance:
    """A family's weights on one device, shared by all sessions that run on it.

    Attributes:
        name: unique in its worker.
        weights_version: changes whenever any weight does; part of every cache key.
        components: modules by the names in the spec.
        blocks: the cache pool; None when no loop keeps a cache.
        prepare_prompt: encodes a prompt into `encodings`, under the parameters of a session, so
            that the unit which takes the prompt finds it there. Called on another thread than the
            step thread, before the prompt is delivered; it may be slow and may raise. None: only
            units encode prompts.
        knows_prompt: whether a prompt is already prepared, so that it is delivered at once. Called
            on the step thread; must be fast. None: no prompt is prepared.
        prompt_parameters: names of parameters that change how a prompt is encoded.
        room: how many sessions fit, and with how much history; None: all that the options ask
            for.
    """

    name: str
    spec: ModelSpec
    device: torch.device
    dtype: torch.dtype
    weights_version: str
    components: Mapping[str, torch.nn.Module] = field(default_factory=dict)
    blocks: BlockPool | None = None
    encodings: EncoderCache = field(default_factory=EncoderCache)
    prepare_prompt: Callable[[str, Mapping[str, float]], None] | None = None
    knows_prompt: Callable[[str, Mapping[str, float]], bool] | None = None
    prompt_parameters: frozenset[str] = frozenset()
    room: MemoryBudget | None = None
