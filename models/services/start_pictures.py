"""Start pictures of a world: PNG files next to its weights."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from reverie.models.contract.errors import CheckpointError
from reverie.models.services.checkpoint_report import NOTHING, CheckpointReport, of_fault
from reverie.models.services.weight_files import refuse_stand_in

PICTURES = "*.png"
LACKING = f"a start picture ({PICTURES})"


def read_picture(path: Path, width: int, height: int) -> Tensor:
    """Return a picture scaled to a size, [3, height, width], 0 to 1.

    Raises:
        CheckpointError: it cannot be read.
    """
    refuse_stand_in(path)
    try:
        with Image.open(path) as picture:
            fitted = picture.convert("RGB").resize((width, height))
    except Exception as error:  # the library's readers raise anything for a broken file
        raise CheckpointError(f"cannot read {path}: {error}") from error
    return torch.from_numpy(np.array(fitted)).permute(2, 0, 1) / 255


def read_starts(folder: Path, width: int, height: int) -> Tensor:
    """Return the start pictures of a folder, [N, 3, height, width], 0 to 1.

    Raises:
        CheckpointError: there is none, or one cannot be read.
    """
    pictures = [read_picture(path, width, height) for path in _files(folder)]
    if not pictures:
        raise CheckpointError(f"{folder} has no start picture ({PICTURES})")
    return torch.stack(pictures)


def check_starts(folder: Path) -> CheckpointReport:
    """Check that there are start pictures and that they can be read."""
    files = _files(folder)
    if not files:
        return replace(NOTHING, lacking=(LACKING,))
    try:
        read_starts(folder, 1, 1)
    except CheckpointError as fault:
        return of_fault(fault)
    return NOTHING.of_part("start pictures", folder, files)


def _files(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(folder.glob(PICTURES)))
