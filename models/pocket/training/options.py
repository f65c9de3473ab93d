"""The options of a training run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Stage = Literal["codec", "world", "narrator", "all"]
DeviceName = Literal["cpu", "cuda", "auto"]
Preset = Literal["pocket", "tiny"]


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """One training run; equal options give equal weights on one machine.

    Attributes:
        out: directory of checkpoints; made when missing.
        seed: of data, noise and initial weights.
        stage: which part to train; each needs those before it in `out`.
        device: where to compute; `auto` takes CUDA when there is one.
        preset: sizes and schedule, see `presets.py`.
        max_minutes: stop (after a checkpoint) after this time; None runs to the end.
        resume: continue from the newest checkpoint in `out`, if there is one.
        threads: CPU threads to compute with.
    """

    out: Path
    seed: int = 0
    stage: Stage = "all"
    device: DeviceName = "auto"
    preset: Preset = "pocket"
    max_minutes: float | None = None
    resume: bool = True
    threads: int = 2
