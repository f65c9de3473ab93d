"""How long walks hold: what can be read in a frame after hundreds of the model's own.

The map of a long walk is the model's own invention, so that frames are not compared with those of
the simulator but read (`legibility.py`): tiles, colours, walker.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from reverie.models.pocket.biomes import Biome, Hour
from reverie.models.pocket.captions import reminder
from reverie.models.pocket.nets import PocketNets
from reverie.models.pocket.rollout import Rollout
from reverie.models.pocket.simulator import Simulator
from reverie.models.pocket.training.legibility import read
from reverie.models.pocket.training.states import random_actions

EVALUATION_SEED = 987_654
_HABIT_FRAMES = 12


@dataclass(frozen=True, slots=True)
class Mark:
    """What could be read at one frame of long walks.

    Attributes:
        frame: counted from the start.
        tiles: share of tiles that are near a drawing in the right colours.
        coloured: share of walks whose colours are right.
        walker: share of walks whose walker stands in the middle and looks the right way.
        commonest: share of tiles of the commonest kind, the mean over walks; on true maps
            about 0.4.
    """

    frame: int
    tiles: float
    coloured: float
    walker: float
    commonest: float


@dataclass(frozen=True, slots=True)
class Recolouring:
    """What a change of prompt did.

    Attributes:
        coloured: share of worlds in the colours that were asked for.
        kept: share of tiles that are what they were before, among worlds so coloured.
    """

    coloured: float
    kept: float


def fresh_worlds(count: int) -> Simulator:
    """Return worlds that no training saw: every biome and hour in turn."""
    index = np.arange(count)
    return Simulator(2**31 + EVALUATION_SEED + index, index % len(Biome), index // 8 % len(Hour))


class Endurance:
    """Walk far with one set of weights; every method starts new worlds.

    Args:
        nets: what is measured.
        levels: noise levels of the denoise calls.
        worlds: how many walk together.
    """

    def __init__(self, nets: PocketNets, levels: tuple[float, ...], worlds: int = 16) -> None:
        self.nets, self.levels, self.worlds = nets, levels, worlds

    def marks(self, frames: tuple[int, ...], *, still: bool = False) -> list[Mark]:
        """Read the given frames of long walks; `still` walkers stay where they are."""
        found = []
        walk = _Walk(self)
        for frame in range(1, max(frames) + 1):
            made = walk.step(still=still)
            if frame in frames:
                seen = read(made, walk.simulator.state)
                common = [np.bincount(k[k < 255]).max() / (k < 255).sum() for k in seen.kinds]
                parts = (seen.tiles, seen.coloured, seen.walker, np.array(common))
                found.append(Mark(frame, *(float(part.mean()) for part in parts)))
        return found

    def recolouring(self, walked: int, within: int = 4) -> Recolouring:
        """Name other colours after `walked` frames, and look `within` frames later."""
        walk = _Walk(self)
        made = walk.simulator.render()
        for _ in range(walked):
            made = walk.step()
        before = read(made, walk.simulator.state)
        rng = np.random.default_rng(EVALUATION_SEED)
        biomes = rng.integers(len(Biome), size=self.worlds)
        hours = rng.integers(len(Hour), size=self.worlds)
        walk.simulator.change(biomes, hours)
        walk.remind()
        for _ in range(within):
            made = walk.step(still=True)
        after = read(made, walk.simulator.state)
        kept = (before.kinds == after.kinds).mean(axis=1)[after.coloured]
        return Recolouring(float(after.coloured.mean()), float(kept.mean()) if len(kept) else 0.0)


class _Walk:
    """Worlds on the way; the simulator keeps what is known of them: facing, phase and colours."""

    def __init__(self, endurance: Endurance) -> None:
        self.simulator = fresh_worlds(endurance.worlds)
        self._nets, self._worlds = endurance.nets, endurance.worlds
        generator = torch.Generator().manual_seed(EVALUATION_SEED)
        first = torch.from_numpy(self.simulator.render())
        self._rollout = Rollout(endurance.nets, first, generator, endurance.levels)
        self._actions = self._habits()
        self.remind()

    def remind(self) -> None:
        """Say what colours there should be, as a session does."""
        state = self.simulator.state
        pairs = zip(state.biome.tolist(), state.hour.tolist(), strict=True)
        texts = [reminder(Biome(biome), Hour(hour)) for biome, hour in pairs]
        self._text = self._nets.embed([self._nets.vocabulary.encode(text) for text in texts])

    def step(self, *, still: bool = False) -> NDArray[np.uint8]:
        """Make the next frames."""
        drawn = next(self._actions)
        actions = np.zeros_like(drawn) if still else drawn
        self.simulator.step(actions)
        frames = self._rollout.step(torch.from_numpy(actions), self._text)
        result: NDArray[np.uint8] = frames.cpu().numpy()
        return result

    def _habits(self) -> Iterator[NDArray[np.int64]]:
        rng = np.random.default_rng(EVALUATION_SEED)
        while True:
            yield from random_actions(rng, self._worlds, _HABIT_FRAMES).T.copy()
