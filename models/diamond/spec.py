"""The DIAMOND family: its description, and how it is loaded.

reverie serve --model diamond --checkpoint PATH     a public agent (a *.pt, or the folder of one)
                                                    with start pictures next to it (*.png), or with
                                                    the spawns of Counter-Strike
reverie serve --model diamond --checkpoint random   tiny random weights: noise, to try the server

The name of an Atari agent's file or folder, such as Pong.pt, or `--game` determines its game;
see `atari.py` for the effect.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from reverie.models.contract.errors import CheckpointError, OptionError
from reverie.models.contract.instance import AUTO, LoadOptions, ModelInstance
from reverie.models.contract.loop import LoopKernel
from reverie.models.contract.seeds import Draw, normal
from reverie.models.contract.spec import (
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    LoopSpec,
    ModelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)
from reverie.models.diamond.actions import control_specs, parameter_specs
from reverie.models.diamond.atari import ACTIONS, FULL, keys_of
from reverie.models.diamond.checkpoint import Agent, compared, load_agent, random_components
from reverie.models.diamond.components import DiamondComponents
from reverie.models.diamond.config import ATARI, CSGO, GameConfig
from reverie.models.diamond.kernel import DiamondKernel
from reverie.models.diamond.network.denoiser import PICTURE
from reverie.models.services.attention_choice import attention_of
from reverie.models.services.checkpoint_report import CheckpointReport
from reverie.models.services.placement import device_of

RANDOM = "random"
FLOAT32 = 4
DRAWING = 3
"""The most pictures that a picture in progress consists of; see `sampler.SamplingState`."""


def diamond_spec(game: GameConfig) -> ModelSpec:
    """Describe a game."""
    height, width = game.height * game.factor, game.width * game.factor
    small, shown = (FLOAT32 * PICTURE * area for area in (game.height * game.width, height * width))
    loop = LoopSpec(
        name="world_model",
        components=("world", "upsampler") if game.upsampler else ("world",),
        streams=(StreamSpec("video", StreamKind.VIDEO, width, height, game.rate_hz),),
        controls=control_specs(game),
        parameters=parameter_specs(game),
        state_bytes=game.world.steps * small + (1 + DRAWING) * shown,
        chunk_bytes=small + shown,
    )
    parts = {"world": "pixels from past pixels and actions", "upsampler": "small pictures to large"}
    return ModelSpec(
        name="diamond",
        title="DIAMOND: a game played in a diffusion model of pixels",
        licence="Apache-2.0",
        components=tuple(ComponentSpec(name, parts[name]) for name in loop.components),
        loops=(loop,),
        programs=(ProgramSpec("world", ("world_model",)),),
        capabilities=CapabilityMatrix(
            {"world_model": frozenset({Capability.ACTIONS, Capability.REWIND, Capability.FORK})}
        ),
        precisions=("float32",),
        games=tuple(ACTIONS),
        has_parts=True,
    )


class Diamond:
    """The family behind the entry point `diamond`.

    Args:
        atari: the sizes of Atari agents.
        csgo: the sizes of the Counter-Strike agent.
        draw: the source of the sessions' noise.
    """

    spec = diamond_spec(ATARI)
    variants: Mapping[str, ModelSpec] = MappingProxyType(
        {game.name: diamond_spec(game) for game in (ATARI, CSGO)}
    )

    def __init__(
        self, atari: GameConfig = ATARI, csgo: GameConfig = CSGO, draw: Draw = normal
    ) -> None:
        self._atari, self._csgo, self._draw = atari, csgo, draw
        self._components: dict[str, DiamondComponents] = {}

    def load(self, options: LoadOptions) -> ModelInstance:
        """Load what `options.checkpoint` names.

        Raises:
            CheckpointError: nothing is named, a file is missing, or one does not fit.
            OptionError: the device or attention is not supported, or the game has other actions.
        """
        if options.checkpoint is None:
            raise CheckpointError(
                "diamond ships no weights: set checkpoint to an agent, or to `random`"
            )
        device = device_of(options)
        if options.checkpoint == RANDOM:
            components, version = random_components(device), RANDOM
        else:
            agent = Agent.find(Path(options.checkpoint), options.parts)
            components, version = (
                load_agent(agent, self._game_of(agent, options.game), device, self._draw),
                agent.version,
            )
        networks = {"world": components.world}
        if components.upsampler is not None:
            networks["upsampler"] = components.upsampler
        attention = attention_of(options, device, torch.float32)
        for network in networks.values():
            network.inner_model.unet.attend_with(attention)
        instance = ModelInstance(
            name="diamond",
            spec=diamond_spec(components.game),
            device=device,
            dtype=torch.float32,
            weights_version=version,
            components=networks,
        )
        self._components[instance.name] = components
        return instance

    def kernel(self, loop: str, instance: ModelInstance) -> LoopKernel[Any]:
        """Return the kernel of `world_model`, the one loop."""
        return DiamondKernel(instance.spec.loop(loop), self._components[instance.name], instance)

    def check(self, path: str, parts: str | None = None) -> CheckpointReport:
        """Compare the networks of a checkpoint with the public ones.

        Args:
            path: the file of an agent, or its folder.
            parts: the folder of its start pictures and spawns; None: they are next to it.

        Raises:
            CheckpointError: there is no agent, or there are several.
        """
        agent = Agent.find(Path(path), parts)
        return compared(agent, self._game_of(agent, AUTO)).report

    def _game_of(self, agent: Agent, wanted: str) -> GameConfig:
        """Return the game: the network implies the kind, and `wanted` or a name the Atari game."""
        stored = agent.stored("world")
        if "inner_model.noise_cond_emb.weight" in stored:
            if wanted != AUTO:
                raise OptionError(
                    f"game: {agent.files[0]} is an agent of Counter-Strike, not of {wanted}"
                )
            return self._csgo
        table = stored.get("inner_model.act_emb.0.weight")
        if table is None or not table.shape:
            raise CheckpointError(f"{agent.files[0]} is not a DIAMOND agent: it has no actions")
        count = table.shape[0]
        if not 2 <= count <= len(FULL):
            raise CheckpointError(
                f"{agent.files[0]} has {count} actions, but Atari games have 2 to {len(FULL)}"
            )
        actions = agent.actions(count, wanted)
        world = replace(self._atari.world, actions=count)
        return replace(self._atari, world=world, actions=actions, keys=keys_of(actions))
