"""What DIAMOND is, and how it is loaded.

reverie serve --model diamond --checkpoint PATH     a public agent (a *.pt, or the folder of one)
                                                    with start pictures next to it (*.png), or with
                                                    the spawns of Counter-Strike
reverie serve --model diamond --checkpoint random   tiny random weights: noise, to try paths

An Atari agent's game is told by the name of its file or folder, such as Pong.pt, or by `--game`;
see `atari.py` for what that decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from reverie.models.diamond.agent import WEIGHTS, Agent
from reverie.models.diamond.atari import ACTIONS, FULL, keys_of
from reverie.models.diamond.config import ATARI, CSGO, GameConfig, SamplerConfig, UNetConfig
from reverie.models.diamond.denoiser import PICTURE, Denoiser
from reverie.models.diamond.kernel import DiamondKernel, DiamondParts
from reverie.models.diamond.starts import check_starts, read_starts, start_of
from reverie.models.services.attention_choice import attention_of
from reverie.models.services.checkpoints import (
    NOTHING,
    CheckpointReport,
    StoredTensor,
    fill,
    inspect,
)
from reverie.models.services.placement import device_of

RANDOM = "random"
FLOAT32 = 4
DRAWING = 3
"""Pictures that one in the making consists of, at most; see `sampler.Drawing`."""
_TINY_UNET = UNetConfig(
    channels=(16, 16), depths=(1, 1), attention=(False, True), condition=16, steps=2, actions=51,
    multi_hot=True, noisy_past=True, sigma_offset=0.1,
)  # fmt: skip
TINY = replace(
    CSGO,
    height=10,
    width=14,
    world=_TINY_UNET,
    sampler=SamplerConfig(steps=2, heun=True, past_sigma=0.005),
    upsampler=replace(_TINY_UNET, steps=1, actions=0, multi_hot=False, extra=3),
    upsampling=SamplerConfig(steps=2, churn=10.0, churn_low=0.0, churn_noise=0.9),
    factor=4,
    fine=SamplerConfig(steps=4, past_sigma=0.005),
    fine_upsampling=SamplerConfig(steps=3),
)


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
        draw: where sessions get their noise from.
    """

    spec = diamond_spec(ATARI)
    variants: Mapping[str, ModelSpec] = MappingProxyType(
        {game.name: diamond_spec(game) for game in (ATARI, CSGO)}
    )

    def __init__(
        self, atari: GameConfig = ATARI, csgo: GameConfig = CSGO, draw: Draw = normal
    ) -> None:
        self._atari, self._csgo, self._draw = atari, csgo, draw
        self._parts: dict[str, DiamondParts] = {}

    def load(self, options: LoadOptions) -> ModelInstance:
        """Load what `options.checkpoint` names.

        Raises:
            CheckpointError: nothing is named, a file is missing, or one does not fit.
            OptionError: there is no such device or attention, or the game has other actions.
        """
        if options.checkpoint is None:
            raise CheckpointError(
                "diamond has no weights of its own: name an agent as checkpoint, or `random`"
            )
        device = device_of(options)
        if options.checkpoint == RANDOM:
            parts, version = random_parts(device), RANDOM
        else:
            agent = Agent.find(Path(options.checkpoint), options.parts)
            parts, version = self._load(agent, options.game, device), agent.version
        networks = {"world": parts.world}
        if parts.upsampler is not None:
            networks["upsampler"] = parts.upsampler
        attention = attention_of(options, device, torch.float32)
        for network in networks.values():
            network.inner_model.unet.attend_with(attention)
        instance = ModelInstance(
            name="diamond",
            spec=diamond_spec(parts.game),
            device=device,
            dtype=torch.float32,
            weights_version=version,
            components=networks,
        )
        self._parts[instance.name] = parts
        return instance

    def kernel(self, loop: str, instance: ModelInstance) -> LoopKernel[Any]:
        """Return the kernel of `world_model`, the one loop."""
        return DiamondKernel(instance.spec.loop(loop), self._parts[instance.name], instance)

    def check(self, path: str, parts: str | None = None) -> CheckpointReport:
        """Compare the networks of a checkpoint with the public ones.

        Args:
            path: the file of an agent, or its folder.
            parts: the folder of what it begins with; None: that is next to it.

        Raises:
            CheckpointError: there is none, or there are several.
        """
        agent = Agent.find(Path(path), parts)
        return _looked_at(agent, self._game_of(agent, AUTO)).report

    def _load(self, agent: Agent, wanted: str, device: torch.device) -> DiamondParts:
        game = self._game_of(agent, wanted)
        found = _looked_at(agent, game)
        found.report.require_fit()
        for model, stored in found.networks:
            fill(model, stored, device, torch.float32)
        world, *rest = (model for model, _ in found.networks)
        starts = read_starts(agent.starts, game)
        return DiamondParts(world, rest[0] if rest else None, game, starts, self._draw)

    def _game_of(self, agent: Agent, wanted: str) -> GameConfig:
        """Return the game: its network says which kind, `wanted` or a name which of Atari's."""
        stored = agent.stored("world")
        if "inner_model.noise_cond_emb.weight" in stored:
            if wanted != AUTO:
                raise OptionError(f"game: {agent.files[0]} plays Counter-Strike, not {wanted}")
            return self._csgo
        table = stored.get("inner_model.act_emb.0.weight")
        if table is None or not table.shape:
            raise CheckpointError(f"{agent.files[0]} is no DIAMOND agent: it has no actions")
        count = table.shape[0]
        if not 2 <= count <= len(FULL):
            raise CheckpointError(
                f"{agent.files[0]} knows {count} actions, and Atari has 2 to {len(FULL)}"
            )
        actions = agent.actions(count, wanted)
        world = replace(self._atari.world, actions=count)
        return replace(self._atari, world=world, actions=actions, keys=keys_of(actions))


def random_parts(device: torch.device, seed: int = 0) -> DiamondParts:
    """Make a tiny game that has learnt nothing; the same for the same seed."""
    assert TINY.upsampler is not None, "the tiny game has both"
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        world, upsampler = Denoiser(TINY.world), Denoiser(TINY.upsampler)
    for network in (world, upsampler):
        network.to(device).eval().requires_grad_(False)
    side = (3, TINY.height, TINY.width)
    pictures = [normal(seed, "start", index, side).tanh() for index in range(3)]
    return DiamondParts(
        world, upsampler, TINY, tuple(start_of(picture, TINY) for picture in pictures)
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """An agent's networks, compared with the public ones and not read yet."""

    networks: tuple[tuple[Denoiser, Mapping[str, StoredTensor]], ...]
    report: CheckpointReport


def _looked_at(agent: Agent, game: GameConfig) -> _Found:
    networks = []
    report = NOTHING
    for part, config in (("world", game.world), ("upsampler", game.upsampler)):
        if config is None:
            continue
        stored = agent.stored(part)
        with torch.device("meta"):
            model = Denoiser(config)
        networks.append((model, stored))
        of_part = inspect(WEIGHTS[part].layout, stored, model)
        report = report.joined(of_part.of_part(part, agent.folder, agent.files))
    return _Found(tuple(networks), report.joined(check_starts(agent.starts, game)))
