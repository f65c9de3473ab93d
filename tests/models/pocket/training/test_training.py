from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from reverie.engine.rollouts import Rollouts
from reverie.models.pocket.checkpoint import load_pocket
from reverie.models.pocket.training.checkpoints import read_checkpoint
from reverie.models.pocket.training.clips import make_clips
from reverie.models.pocket.training.export import export
from reverie.models.pocket.training.loop import checkpoint_path, run_task
from reverie.models.pocket.training.options import TrainOptions
from reverie.models.pocket.training.presets import recipe
from reverie.models.pocket.training.run import make_world_training, train

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train the tiny preset to its end once."""
    out = tmp_path_factory.mktemp("run")
    train(TrainOptions(out=out, device="cpu", preset="tiny", threads=1), Rollouts)
    return out


def world_weights(out: Path) -> dict[str, torch.Tensor]:
    content = read_checkpoint(checkpoint_path(out, "world"), CPU)
    weights: dict[str, torch.Tensor] = content["task"]["average"]
    return weights


def test_a_stopped_training_continues_to_the_same_weights(run: Path, tmp_path: Path) -> None:
    checkpoint_path(tmp_path, "codec").write_bytes(checkpoint_path(run, "codec").read_bytes())
    options = TrainOptions(out=tmp_path, stage="world", device="cpu", preset="tiny", threads=1)
    chosen = recipe("tiny")
    stopped = make_world_training(options, chosen, CPU, Rollouts)
    stopped.steps = 2  # the schedule still counts to its own end
    run_task(stopped, tmp_path, CPU, resume=False, deadline_s=None)
    train(options, Rollouts)
    whole, resumed = world_weights(run), world_weights(tmp_path)
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_an_interrupted_write_leaves_the_old_checkpoint(run: Path, tmp_path: Path) -> None:
    path = checkpoint_path(tmp_path, "codec")
    path.write_bytes(checkpoint_path(run, "codec").read_bytes())
    path.with_suffix(".partial").write_bytes(b"half a file")
    assert read_checkpoint(path, CPU)["step"] == recipe("tiny").codec.steps


def test_a_deadline_stops_the_training_after_a_checkpoint(tmp_path: Path) -> None:
    train(
        TrainOptions(out=tmp_path, device="cpu", preset="tiny", threads=1, max_minutes=0.0),
        Rollouts,
    )
    assert read_checkpoint(checkpoint_path(tmp_path, "codec"), CPU)["step"] == 0
    assert not checkpoint_path(tmp_path, "world").exists()


def test_narrator_training_changes_only_the_narrator(run: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "after.safetensors", "tiny")
    for name in ("codec", "world"):
        checkpoint_path(tmp_path, name).write_bytes(checkpoint_path(run, name).read_bytes())
    export(tmp_path, tmp_path / "before.safetensors", "tiny")
    before, after = (load_file(tmp_path / f"{name}.safetensors") for name in ("before", "after"))
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert {name.split(".")[0] for name in moved} == {"narrator"}


def test_an_export_loads(run: Path, tmp_path: Path) -> None:
    version = export(run, tmp_path / "tiny.safetensors", "tiny")
    nets = load_pocket(tmp_path / "tiny.safetensors", CPU, torch.float32)
    assert nets.version == version
    assert nets.config == recipe("tiny").config


def test_clips_are_a_pure_function_of_their_generator() -> None:
    first, second = (make_clips(np.random.default_rng(4), 3, 4) for _ in range(2))
    assert np.array_equal(first.frames, second.frames)
    assert first.captions == second.captions


def test_clips_hold_changes_fresh_starts_and_still_walkers() -> None:
    clips = make_clips(np.random.default_rng(5), 200, 5)
    changed = clips.caption_index[:, -1] == 1
    assert 0.25 < changed.mean() < 0.45
    assert 0.1 < clips.fresh.mean() < 0.3
    assert (clips.actions == 0).all(axis=1).mean() > 0.05
    assert clips.frames.shape == (200, 6, 128, 128, 3)


def test_options_are_values() -> None:
    options = TrainOptions(out=Path("run"))
    assert replace(options, seed=0) == options
