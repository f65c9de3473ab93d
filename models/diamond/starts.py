"""The start of a world: the past pictures and actions of its first step.

The public Counter-Strike weights come with spawns, folders of arrays with recorded pasts in both
sizes. A single picture works as well: the past is that picture repeated, without actions.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from reverie.models.contract.errors import CheckpointError
from reverie.models.diamond.actions import idle_action
from reverie.models.diamond.config import GameConfig
from reverie.models.services.checkpoint_report import NOTHING, CheckpointReport, of_fault
from reverie.models.services.start_pictures import LACKING, PICTURES, read_picture
from reverie.models.services.weight_files import refuse_stand_in

_SPAWNS = "spawn/*/low_res.npy"


@dataclass(frozen=True, slots=True)
class Start:
    """The past that a world begins with.

    Attributes:
        pictures_PCHW: -1 to 1, oldest first.
        actions: between each picture and the next: ids [P], or rows [P, E].
        shown_CHW: the newest picture, in the size that is shown.
    """

    pictures_PCHW: Tensor
    actions: Tensor
    shown_CHW: Tensor


def start_of(picture_CHW: Tensor, game: GameConfig) -> Start:
    """Return a start whose past is one picture."""
    steps = game.world.steps
    idle = idle_action(game)
    shown = enlarged(picture_CHW, game.factor).clamp(-1, 1)
    past = picture_CHW.expand(steps, *picture_CHW.shape)
    return Start(past, idle.expand(steps, *idle.shape), shown)


def enlarged(picture_CHW: Tensor, factor: int) -> Tensor:
    """Return a picture scaled as the upsampler's input."""
    if factor == 1:
        return picture_CHW
    return functional.interpolate(picture_CHW[None], scale_factor=factor, mode="bicubic")[0]


def check_starts(folder: Path, game: GameConfig) -> CheckpointReport:
    """Check that a folder has spawns or start pictures, and that they can be read."""
    files = (*_spawns(folder, game), *sorted(folder.glob(PICTURES)))
    if not files:
        return replace(NOTHING, lacking=(LACKING,))
    try:
        read_starts(folder, game)
    except CheckpointError as fault:
        return of_fault(fault)
    return NOTHING.of_part("starts", folder, files)


def read_starts(folder: Path, game: GameConfig) -> tuple[Start, ...]:
    """Read all starts of a folder, spawns first.

    Raises:
        CheckpointError: there are none, or one cannot be read.
    """
    spawned = [_spawned(path, game) for path in _spawns(folder, game)]
    drawn = [start_of(_picture(path, game), game) for path in sorted(folder.glob(PICTURES))]
    if not spawned and not drawn:
        raise CheckpointError(f"{folder} has no start picture ({PICTURES})")
    return (*spawned, *drawn)


def _spawns(folder: Path, game: GameConfig) -> Iterator[Path]:
    """Find spawns next to the weights, or next to their folder, as they are published."""
    if game.upsampler is not None:
        found = [*folder.glob(_SPAWNS)] or [*folder.resolve().parent.glob(_SPAWNS)]
        yield from sorted(path.parent for path in found)


def _spawned(folder: Path, game: GameConfig) -> Start:
    steps, side = game.world.steps, (3, game.height, game.width)
    large = (3, game.height * game.factor, game.width * game.factor)
    pictures = _array(folder / "low_res.npy", side, steps)
    shown = _array(folder / "full_res.npy", large, 1)
    actions = _array(folder / "act.npy", (game.world.actions,), steps)
    return Start(_unit(pictures), actions.float(), _unit(shown)[-1])


def _array(path: Path, shape: tuple[int, ...], steps: int) -> Tensor:
    """Read the last `steps` elements of an array, which must have at least as many of one shape."""
    refuse_stand_in(path)
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise CheckpointError(f"cannot read {path}: {error}") from error
    if array.shape[1:] != shape or len(array) < steps:
        wanted = f"at least {steps} of {' x '.join(map(str, shape))}"
        raise CheckpointError(f"{path} must be {wanted}, not {' x '.join(map(str, array.shape))}")
    return torch.from_numpy(array[-steps:].astype(np.float32))


def _picture(path: Path, game: GameConfig) -> Tensor:
    return read_picture(path, game.width, game.height) * 2 - 1


def _unit(levels: Tensor) -> Tensor:
    return levels / 255 * 2 - 1
