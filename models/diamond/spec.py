"""What DIAMOND is, and how it is loaded.

reverie serve --model diamond --checkpoint DIR      a public agent (*.pt) with start pictures,
                                                    *.png; `csgo` in its name makes it that game
reverie serve --model diamond --checkpoint random   tiny random weights: noise, to try paths
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from reverie.models.attending import attention_of
from reverie.models.checkpoints import (
    CheckpointManifest,
    CheckpointReport,
    StoredTensor,
    fill,
    inspect,
)
from reverie.models.diamond.actions import control_specs, parameter_specs
from reverie.models.diamond.config import ATARI, CSGO, GameConfig, SamplerConfig, UNetConfig
from reverie.models.diamond.denoiser import PICTURE, Denoiser
from reverie.models.diamond.kernel import DiamondKernel, DiamondParts
from reverie.models.errors import CheckpointError
from reverie.models.instance import LoadOptions, ModelInstance
from reverie.models.loop import LoopKernel
from reverie.models.placement import device_of
from reverie.models.seeds import normal
from reverie.models.spec import (
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    LoopSpec,
    ModelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)

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


def _part(name: str) -> CheckpointManifest:
    def rename(stored: str) -> str | None:
        before, dot, own = stored.partition(".")
        return own if dot and before == name else None

    return CheckpointManifest(f"DIAMOND agent, {name}", ("*.pt",), rename)


WEIGHTS = {"world": _part("denoiser"), "upsampler": _part("upsampler")}


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
    )


class Diamond:
    """The family behind the entry point `diamond`."""

    spec = diamond_spec(ATARI)
    variants: Mapping[str, ModelSpec] = MappingProxyType(
        {game.name: diamond_spec(game) for game in (ATARI, CSGO)}
    )

    def __init__(self) -> None:
        self._parts: dict[str, DiamondParts] = {}

    def load(self, options: LoadOptions) -> ModelInstance:
        """Load what `options.checkpoint` names.

        Raises:
            CheckpointError: nothing is named, a file is missing, or one does not fit.
            OptionError: there is no such device or attention.
        """
        if options.checkpoint is None:
            raise CheckpointError(
                "diamond has no weights of its own: name a folder as checkpoint, or `random`"
            )
        device = device_of(options)
        if options.checkpoint == RANDOM:
            parts, version = random_parts(device), RANDOM
        else:
            parts, version = _load(Path(options.checkpoint), device)
        attention = attention_of(options, device, torch.float32)
        for network in (parts.world, parts.upsampler):
            if network is not None:
                network.inner_model.unet.attend_with(attention)
        instance = ModelInstance(
            name="diamond",
            spec=diamond_spec(parts.game),
            device=device,
            dtype=torch.float32,
            weights_version=version,
            components={"world": parts.world},
        )
        self._parts[instance.name] = parts
        return instance

    def kernel(self, loop: str, instance: ModelInstance) -> LoopKernel[Any]:
        """Return the kernel of `world_model`, the one loop."""
        return DiamondKernel(instance.spec.loop(loop), self._parts[instance.name], instance)

    def check(self, path: str) -> CheckpointReport:
        """Compare the networks of a checkpoint with the public ones.

        Raises:
            CheckpointError: there is none.
        """
        folder = Path(path)
        stored = _stored(folder, "world")
        game = game_of(folder, stored)
        with torch.device("meta"):
            report = inspect(WEIGHTS["world"].layout, stored, Denoiser(game.world))
            if game.upsampler is not None:
                more, fine = _stored(folder, "upsampler"), Denoiser(game.upsampler)
                report = report.joined(inspect(WEIGHTS["upsampler"].layout, more, fine))
        lacking = () if any(folder.glob("*.png")) else ("a start picture (*.png)",)
        return replace(report, lacking=lacking)


def game_of(folder: Path, stored: Mapping[str, StoredTensor]) -> GameConfig:
    """Return the game of a checkpoint: by its name, with as many actions as it has learnt."""
    if "csgo" in folder.name.lower() or any(
        "csgo" in file.name.lower() for file in folder.glob("*.pt")
    ):
        return CSGO
    table = stored.get("inner_model.act_emb.0.weight")
    if table is None:
        raise CheckpointError(f"{folder} is no DIAMOND agent: it has no actions")
    actions = table.shape[0]
    if not 2 <= actions <= 1 + len(ATARI.keys):
        raise CheckpointError(f"{folder} knows {actions} actions, and Atari has 2 to 18")
    world = replace(ATARI.world, actions=actions)
    return replace(ATARI, world=world, keys=ATARI.keys[: actions - 1])


def random_parts(device: torch.device, seed: int = 0) -> DiamondParts:
    """Make a tiny game that has learnt nothing; the same for the same seed."""
    assert TINY.upsampler is not None, "the tiny game has both"
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        world, upsampler = Denoiser(TINY.world), Denoiser(TINY.upsampler)
    for network in (world, upsampler):
        network.to(device).eval().requires_grad_(False)
    side = (3, TINY.height, TINY.width)
    starts = torch.stack([normal(seed, "start", index, side).tanh() for index in range(3)])
    return DiamondParts(world, upsampler, TINY, starts)


def _stored(folder: Path, part: str) -> dict[str, StoredTensor]:
    files = WEIGHTS[part].find(folder)
    if not files:
        raise CheckpointError(f"{folder} holds no agent (*.pt)")
    return WEIGHTS[part].tensors(files)


def _load(folder: Path, device: torch.device) -> tuple[DiamondParts, str]:
    stored = _stored(folder, "world")
    game = game_of(folder, stored)
    world = _filled("world", stored, game.world, device)
    upsampler = None
    if game.upsampler is not None:
        upsampler = _filled("upsampler", _stored(folder, "upsampler"), game.upsampler, device)
    files = WEIGHTS["world"].find(folder)
    version = "-".join(f"{file.stat().st_size:x}.{file.stat().st_mtime_ns:x}" for file in files)
    return DiamondParts(world, upsampler, game, _starts(folder, game)), version


def _filled(
    part: str, stored: Mapping[str, StoredTensor], config: UNetConfig, device: torch.device
) -> Denoiser:
    with torch.device("meta"):
        model = Denoiser(config)
    inspect(WEIGHTS[part].layout, stored, model).require_fit()
    fill(model, stored, device, torch.float32)
    return model


def _starts(folder: Path, game: GameConfig) -> Tensor:
    pictures = []
    for path in sorted(folder.glob("*.png")):
        try:
            with Image.open(path) as picture:
                fitted = picture.convert("RGB").resize((game.width, game.height))
        except (OSError, UnidentifiedImageError) as error:
            raise CheckpointError(f"cannot read {path}: {error}") from error
        pictures.append(torch.from_numpy(np.array(fitted)).permute(2, 0, 1) / 127.5 - 1)
    if not pictures:
        raise CheckpointError(f"{folder} holds no start picture (*.png)")
    return torch.stack(pictures)
