"""The loop that all trainings share: steps, checkpoints, progress, stopping and resuming."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from tqdm import tqdm

from reverie.models.pocket.training.checkpoints import read_checkpoint, write_checkpoint

CHECKPOINT_EVERY_S = 120.0
REPORT_EVERY = 20


class TrainingTask(Protocol):
    """A training that runs step by step."""

    name: str
    steps: int

    def train_step(self, step: int) -> Mapping[str, float]:
        """Run one step, a pure function of the state and the step; return the values to report."""

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next step depends on."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""


def checkpoint_path(out: Path, name: str) -> Path:
    """Return the path of a task's newest checkpoint."""
    return out / f"{name}.pt"


def run_task(
    task: TrainingTask, out: Path, device: torch.device, *, resume: bool, deadline_s: float | None
) -> bool:
    """Train until `task.steps` or the deadline.

    Args:
        task: what to train.
        out: the folder of its checkpoint and its log (`<name>.jsonl`).
        device: where a checkpoint is loaded to.
        resume: continue from the checkpoint if there is one.
        deadline_s: a `time.monotonic` value, or None.

    Returns:
        Whether the task has run all of its steps.
    """
    path = checkpoint_path(out, task.name)
    step = 0
    if resume and path.exists():
        content = read_checkpoint(path, device)
        task.load_state_dict(content["task"])
        step = int(content["step"])
    saved_at = time.monotonic()
    with tqdm(total=task.steps, initial=step, desc=task.name, mininterval=5) as bar:
        while step < task.steps and (deadline_s is None or time.monotonic() < deadline_s):
            report = task.train_step(step)
            step += 1
            bar.update()
            if step % REPORT_EVERY == 0:
                bar.set_postfix({k: f"{v:.4f}" for k, v in report.items()}, refresh=False)
                _log(out / f"{task.name}.jsonl", {"step": step, **report})
            if time.monotonic() - saved_at > CHECKPOINT_EVERY_S:
                write_checkpoint(path, {"task": task.state_dict(), "step": step})
                saved_at = time.monotonic()
    write_checkpoint(path, {"task": task.state_dict(), "step": step})
    return step >= task.steps


def _log(path: Path, report: Mapping[str, float]) -> None:
    with path.open("a") as file:
        file.write(json.dumps({k: round(v, 5) for k, v in report.items()}) + "\n")
