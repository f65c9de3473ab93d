"""How well the model plays: measured against the simulator, and drawn for the eye.

`python -m reverie.models.pocket.training.evaluate [--weights FILE] [--steps N]
[--marks FRAME ...] [--sheet PNG]`
"""

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from reverie.models.pocket.biomes import Action
from reverie.models.pocket.checkpoint import load_pocket
from reverie.models.pocket.nets import PocketNets
from reverie.models.pocket.rollout import Rollout
from reverie.models.pocket.sampler import noise_levels
from reverie.models.pocket.simulator import Simulator, WorldState, advance, render
from reverie.models.pocket.training.endurance import (
    EVALUATION_SEED,
    Endurance,
    Mark,
    Recolouring,
    fresh_worlds,
)
from reverie.models.pocket.training.states import random_actions

STILL_FRAMES = 300


@dataclass(frozen=True, slots=True)
class Report:
    """What was measured.

    Attributes:
        codec_psnr: dB, on fresh maps.
        following: share of frames nearest to the render of the action that was asked for, of five.
        frame_psnr: dB against the simulator where the land was in view before.
        still_psnr: dB between the first frame and the one after `STILL_FRAMES` of waiting.
        recolouring: four frames after a prompt at the start.
        late_recolouring: four frames after a prompt at frame 100 of a walk.
        walks: what can be read after many frames of walking.
        still: the same for walkers who stand.
    """

    codec_psnr: float
    following: float
    frame_psnr: float
    still_psnr: float
    recolouring: Recolouring
    late_recolouring: Recolouring
    walks: list[Mark]
    still: list[Mark]


def psnr(made: NDArray[np.uint8], true: NDArray[np.uint8]) -> float:
    """Return the peak signal-to-noise ratio in dB."""
    error = np.square(made.astype(np.float64) - true).mean()
    return float(10 * np.log10(255**2 / max(error, 1e-9)))


def _embed(nets: PocketNets, texts: list[str]) -> Tensor:
    return nets.embed([nets.vocabulary.encode(text) for text in texts])


def _distance(made: NDArray[np.uint8], state: WorldState) -> NDArray[np.float64]:
    error = made.astype(np.float32) - render(state)
    distance: NDArray[np.float64] = np.square(error).mean(axis=(1, 2, 3), dtype=np.float64)
    return distance


class Evaluation:
    """Measure one set of weights; every method starts new worlds."""

    def __init__(self, nets: PocketNets, levels: tuple[float, ...], worlds: int = 48) -> None:
        self.nets, self.levels, self.worlds = nets, levels, worlds

    def _start(self, simulator: Simulator) -> Rollout:
        generator = torch.Generator().manual_seed(EVALUATION_SEED)
        return Rollout(self.nets, torch.from_numpy(simulator.render()), generator, self.levels)

    def codec_psnr(self) -> float:
        """Return the quality of encode and decode alone."""
        frames = fresh_worlds(self.worlds).render()
        made = self.nets.decode(self.nets.encode(torch.from_numpy(frames)))
        return psnr(made.cpu().numpy(), frames)

    def following(self, frames: int = 4) -> tuple[float, float]:
        """Return the share of actions followed and the PSNR of the first frame's inner part."""
        simulator = fresh_worlds(self.worlds)
        rollout = self._start(simulator)
        text = _embed(self.nets, [""] * self.worlds)
        actions = random_actions(np.random.default_rng(EVALUATION_SEED), self.worlds, frames)
        hits, first = [], 0.0
        for frame in range(frames):
            action = actions[:, frame]
            made = rollout.step(torch.from_numpy(action), text).cpu().numpy()
            choices = [advance(simulator.state, np.full_like(action, a)) for a in Action]
            distances = np.stack([_distance(made, choice) for choice in choices])
            hits.append(distances.argmin(axis=0) == action)
            simulator.step(action)
            if frame == 0:
                first = psnr(made[:, 8:-8, 8:-8], simulator.render()[:, 8:-8, 8:-8])
        return float(np.mean(hits)), first

    def still_psnr(self, frames: int = 30) -> float:
        """Return how much of a picture is left after waiting; even counts keep the phase."""
        simulator = fresh_worlds(self.worlds)
        before = simulator.render()
        rollout = self._start(simulator)
        text = _embed(self.nets, [""] * self.worlds)
        wait = torch.zeros(self.worlds, dtype=torch.long)
        for _ in range(frames):
            made = rollout.step(wait, text)
        return psnr(made.cpu().numpy(), before)

    def report(self, marks: tuple[int, ...]) -> Report:
        """Measure everything; walks are read at the frames `marks`."""
        following, first = self.following()
        endurance = Endurance(self.nets, self.levels, self.worlds)
        return Report(
            self.codec_psnr(),
            following,
            first,
            self.still_psnr(STILL_FRAMES),
            endurance.recolouring(0),
            endurance.recolouring(100),
            endurance.marks(marks),
            endurance.marks((STILL_FRAMES,), still=True),
        )


def rollout_sheet(
    nets: PocketNets, levels: tuple[float, ...], path: Path, frames: int = 201
) -> None:
    """Draw eight long walks, one a row; in the lower four the prompt changes at frame 100."""
    count, shown = 8, (0, 1, 2, 4, 8, 16, 32, 64, 99, 102, 120, 150, 175, 200)
    simulator = fresh_worlds(count)
    generator = torch.Generator().manual_seed(EVALUATION_SEED)
    rollout = Rollout(nets, torch.from_numpy(simulator.render()), generator, levels)
    rng = np.random.default_rng(EVALUATION_SEED)
    actions = np.concatenate([random_actions(rng, count, 12) for _ in range(frames // 12 + 1)], 1)
    actions[0], actions[4] = Action.RIGHT, Action.UP
    after = ["", "", "", "", "now it is night", "turn into a frozen lake land",
             "a neon city at night", "it becomes a sandy desert"]  # fmt: skip
    texts = [_embed(nets, [""] * count), _embed(nets, after)]
    columns = [simulator.render()]
    for frame in range(1, frames):
        made = rollout.step(torch.from_numpy(actions[:, frame]), texts[frame >= 100])
        if frame in shown:
            columns.append(made.cpu().numpy())
    sheet = np.concatenate([np.concatenate(list(column), axis=0) for column in columns], axis=1)
    Image.fromarray(sheet).save(path)


def main() -> None:
    """Read the command line, print a report as JSON, draw a sheet if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--weights", type=Path, default=None, help="default: the shipped weights")
    parser.add_argument("--sheet", type=Path, default=None, help="PNG to draw long walks into")
    parser.add_argument("--steps", type=int, default=3, help="denoise steps a frame")
    parser.add_argument("--worlds", type=int, default=24, help="worlds that walk together")
    parser.add_argument(
        "--marks", type=int, nargs="+", default=[16, 64, 200], help="frames at which walks are read"
    )
    options = parser.parse_args()
    nets = load_pocket(options.weights)
    levels = noise_levels(options.steps)
    report = Evaluation(nets, levels, options.worlds).report(tuple(options.marks))
    print(json.dumps(asdict(report), indent=1))  # noqa: T201
    if options.sheet is not None:
        rollout_sheet(nets, levels, options.sheet)


if __name__ == "__main__":
    main()
