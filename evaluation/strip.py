"""A picture of generated frames: one walk in each row, time runs to the right."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from reverie.evaluation.model_rig import ModelRig, Pictures, RigParts, ServedModelRig
from reverie.evaluation.run import EvaluationOptions
from reverie.evaluation.trials import random_walk
from reverie.evaluation.worlds import Stream, draw_worlds
from reverie.models.pocket.spec import DEFAULT_STEPS

SHOWN = (0, 1, 8, 30, 99, 102, 106, 150, 199)
CHANGES_AT = 100
"""The frame with which the prompt changes."""
GAP_PX = 4


@dataclass(frozen=True, slots=True)
class StripRow:
    """A walk: the prompt at the start, and the prompt at frame `CHANGES_AT`."""

    first: str
    later: str


ROWS = (
    StripRow("a green meadow by day", "now it is night"),
    StripRow("a frozen lake land at dusk", "a volcanic land at night"),
    StripRow("a candy land by day", "a neon city at night"),
)


def draw_strip(path: Path, options: EvaluationOptions) -> None:
    """Run the walks `ROWS` through the serving loop and draw the frames `SHOWN` into a PNG file.

    Raises:
        CheckpointError: the weights are missing or do not fit.
        OSError: the file cannot be written.
    """
    parts = RigParts.load(options.checkpoint)
    steps = options.steps[0] if options.steps else DEFAULT_STEPS
    Image.fromarray(join(frames(ServedModelRig(parts, steps)))).save(path, optimize=True)


def frames(model_rig: ModelRig) -> list[Pictures]:
    """Return the pictures of the walks, a list over time of uint8 [rows, H, W, 3]."""
    drawn = draw_worlds(Stream.STRIP, len(ROWS))
    worlds = [world.under(row.first) for world, row in zip(drawn, ROWS, strict=True)]
    with closing(model_rig.open_sessions(worlds)) as sessions:
        shown = [sessions.begin()]
        for frame, actions in enumerate(random_walk(worlds, max(SHOWN)), start=1):
            if frame == CHANGES_AT:
                sessions.say([row.later for row in ROWS])
            picture = sessions.act(actions)
            if frame in SHOWN:
                shown.append(picture)
    return shown


def join(shown: list[Pictures]) -> Pictures:
    """Join pictures with white gaps between them: uint8 [height, width, 3]."""
    columns = [np.concatenate(list(_framed(column)), axis=0) for column in shown]
    whole = np.concatenate(columns, axis=1)
    return whole[GAP_PX:, GAP_PX:]


def _framed(pictures_NHWC: Pictures) -> Pictures:
    gaps = ((0, 0), (GAP_PX, 0), (GAP_PX, 0), (0, 0))
    return np.pad(pictures_NHWC, gaps, constant_values=255)
