"""A public agent: its files, compared with the networks and then loaded."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from reverie.models.contract.errors import CheckpointError, OptionError
from reverie.models.contract.instance import AUTO
from reverie.models.contract.seeds import Draw, normal
from reverie.models.diamond.atari import ACTIONS, FULL, game_called, numbered
from reverie.models.diamond.components import DiamondComponents
from reverie.models.diamond.config import CSGO, GameConfig, SamplerConfig, UNetConfig
from reverie.models.diamond.network.denoiser import Denoiser
from reverie.models.diamond.starts import check_starts, read_starts, start_of
from reverie.models.services.checkpoint_report import NOTHING, SHOWN, CheckpointReport
from reverie.models.services.checkpoints import CheckpointManifest, StoredTensor, fill, inspect


def _part(name: str) -> CheckpointManifest:
    def rename(stored: str) -> str | None:
        before, dot, own = stored.partition(".")
        return own if dot and before == name else None

    return CheckpointManifest(f"DIAMOND agent, {name}", ("*.pt", "model/*.pt"), rename)


WEIGHTS = {"world": _part("denoiser"), "upsampler": _part("upsampler")}
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


@dataclass(frozen=True, slots=True)
class Agent:
    """A public agent.

    Attributes:
        files: its weights.
        folder: of the weights.
        starts: the folder of its start pictures and spawns.
    """

    files: tuple[Path, ...]
    folder: Path
    starts: Path

    @classmethod
    def find(cls, path: Path, parts: str | None = None) -> "Agent":
        """Find the agent at a path.

        Args:
            path: the file or the folder.
            parts: the folder of start pictures and spawns; None: they are next to the agent.

        Raises:
            CheckpointError: there is none, or there are several.
        """
        if not path.exists():
            raise CheckpointError(f"{path}: no such file or folder")
        starts = None if parts is None else Path(parts)
        if path.is_file():
            return cls((path,), path.parent, starts or path.parent)
        files = WEIGHTS["world"].find(path)
        if not files:
            raise CheckpointError(f"{path} contains no agent (*.pt)")
        if len(files) > 1:
            names = ", ".join(file.name for file in files[:SHOWN])
            raise CheckpointError(
                f"{path} contains {len(files)} agents ({names}): set checkpoint to one of the files"
            )
        return cls(files, path, starts or path)

    @property
    def version(self) -> str:
        """Identifies these weights."""
        stats = [file.stat() for file in self.files]
        return "-".join(f"{stat.st_size:x}.{stat.st_mtime_ns:x}" for stat in stats)

    def stored(self, part: str) -> dict[str, StoredTensor]:
        """Return the tensors of one network.

        Raises:
            CheckpointError: they cannot be read.
        """
        return WEIGHTS[part].tensors(self.files)

    def actions(self, count: int, wanted: str) -> tuple[str, ...]:
        """Return the names of an Atari agent's actions; numbers where its game is unknown.

        Raises:
            OptionError: the requested game has another number of actions.
        """
        if wanted != AUTO:
            game = game_called(wanted)
            known = ACTIONS[game] if game else ()
            if len(known) != count:
                has = f"has {len(known)} actions" if known else "is not a game of Atari 100k"
                raise OptionError(f"game: {wanted} {has}, but {self.files[0]} has {count} actions")
            return known
        if count == len(FULL):
            return FULL
        for name in (self.files[0].stem, self.folder.resolve().name):
            game = game_called(name)
            if game is not None and len(ACTIONS[game]) == count:
                return ACTIONS[game]
        return numbered(count)


def load_agent(
    agent: Agent, game: GameConfig, device: torch.device, draw: Draw
) -> DiamondComponents:
    """Load an agent of a game.

    Raises:
    CheckpointError: a file is missing, or one does not fit.
    """
    found = compared(agent, game)
    found.report.require_fit()
    for model, stored in found.networks:
        fill(model, stored, device, torch.float32)
    world, *rest = (model for model, _ in found.networks)
    starts = read_starts(agent.starts, game)
    return DiamondComponents(world, rest[0] if rest else None, game, starts, draw)


def random_components(device: torch.device, seed: int = 0) -> DiamondComponents:
    """Make a tiny game with random weights; the same for the same seed."""
    assert TINY.upsampler is not None, "the tiny game has both"
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        world, upsampler = Denoiser(TINY.world), Denoiser(TINY.upsampler)
    for network in (world, upsampler):
        network.to(device).eval().requires_grad_(False)
    side = (3, TINY.height, TINY.width)
    pictures = [normal(seed, "start", index, side).tanh() for index in range(3)]
    return DiamondComponents(
        world, upsampler, TINY, tuple(start_of(picture, TINY) for picture in pictures)
    )


@dataclass(frozen=True, slots=True)
class AgentContents:
    """An agent's networks, compared with the public ones; they are read on demand."""

    networks: tuple[tuple[Denoiser, Mapping[str, StoredTensor]], ...]
    report: CheckpointReport


def compared(agent: Agent, game: GameConfig) -> AgentContents:
    """Compare an agent's networks with those of a game; only headers and pictures are read."""
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
    return AgentContents(tuple(networks), report.joined(check_starts(agent.starts, game)))
