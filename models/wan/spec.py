"""The causal Wan family, and how it is loaded.

    reverie models check DIR                           whether a checkpoint fits
    reverie serve --model wan --checkpoint DIR         see checkpoint/contents.py for the files
    reverie serve --model wan --checkpoint random      tiny random weights: noise, to try the server

The heavy libraries of the extra `wan` are imported when a model is loaded, not before.
"""

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from reverie.models.contract.blocks import BlockPool
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import LoopKernel
from reverie.models.contract.spec import (
    ModelSpec,
)
from reverie.models.services.attention_choice import attention_of, block_attention_of
from reverie.models.services.capacity import room_for
from reverie.models.services.checkpoint_report import CheckpointReport
from reverie.models.services.guidance.select import GuidanceFactory, guidance_of
from reverie.models.services.weight_files import CheckpointPaths
from reverie.models.wan.checkpoint.loras import check as check_lora
from reverie.models.wan.components import WanComponents
from reverie.models.wan.config import (
    GRID,
    LONGLIVE,
    T2V_1_3B,
    T2V_14B,
)
from reverie.models.wan.description import wan_spec
from reverie.models.wan.guidance import SPACE, in_one_batch
from reverie.models.wan.kernel import WanKernel
from reverie.models.wan.network.fast_decoder import check as check_decoder
from reverie.models.wan.network.fast_decoder import holds_fast_decoder
from reverie.models.wan.prompts import WanPrompts
from reverie.models.wan.restyle import WanRestyleKernel

if TYPE_CHECKING:
    from reverie.models.wan.checkpoint.contents import CheckpointContents
    from reverie.models.wan.checkpoint.loading import LoadedWan


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
            OptionError: the device, precision, attention or guidance is not supported.
        """
        if options.checkpoint is None:
            raise CheckpointError(
                "wan ships no weights: set checkpoint to a folder, or to `random`"
            )
        loaded: LoadedWan = _module("checkpoint.loading").load_components(options)
        instance = assemble(loaded.components, loaded.version, options)
        self._components[instance.name] = loaded.components
        takes_scale = loaded.components.transformer.config.takes_guidance
        policy_for = guidance_of(options, SPACE, takes_scale=takes_scale, model="wan")
        self._policies[instance.name] = policy_for
        if instance.prepare_prompt is not None:
            instance.prepare_prompt("", {})  # guidance needs it within a denoise call
        return instance

    def kernel(self, loop: str, instance: ModelInstance) -> LoopKernel[Any]:
        """Return the kernel of one of the loops."""
        kernel = WanRestyleKernel if loop == "restyle" else WanKernel
        components = self._components[instance.name]
        policy_for = self._policies.get(instance.name, in_one_batch)
        return kernel(instance.spec.loop(loop), components, instance, policy_for)

    def check(self, path: str, parts: str | None = None) -> CheckpointReport:
        """Check every part of a checkpoint, without reading its weights.

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
    """Make an instance; its cache pool holds as many of the requested sessions as fit."""
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
        why = "wan needs the extra `wan`: run pip install '.[wan]' in a checkout of reverie"
        raise CheckpointError(f"{why} ({error})") from error
