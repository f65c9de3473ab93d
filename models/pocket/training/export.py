"""Make a weights file from the newest checkpoints of a run.

`python -m reverie.models.pocket.training.export --run DIR [--to FILE] [--preset NAME]`
"""

import argparse
from pathlib import Path

import torch

from reverie.models.pocket.checkpoint import (
    SHIPPED_WEIGHTS,
    PocketParts,
    TrainingRecord,
    save_pocket,
)
from reverie.models.pocket.narration.vocabulary import NarrationVocabulary
from reverie.models.pocket.network.codec import PictureCodec
from reverie.models.pocket.network.vocabulary import Vocabulary
from reverie.models.pocket.training.checkpoints import read_checkpoint
from reverie.models.pocket.training.loop import checkpoint_path
from reverie.models.pocket.training.options import Preset
from reverie.models.pocket.training.presets import recipe
from reverie.models.pocket.training.world_training import TrainableNets


def export(run: Path, to: Path = SHIPPED_WEIGHTS, preset: Preset = "pocket", seed: int = 0) -> str:
    """Write the running average of the world model, and the codec, to `to`; returns the version."""
    device = torch.device("cpu")
    codec_content = read_checkpoint(checkpoint_path(run, "codec"), device)
    world_content = read_checkpoint(checkpoint_path(run, "world"), device)
    config = recipe(preset).config
    codec, nets = PictureCodec(config.codec), TrainableNets(config)
    codec.load_state_dict(codec_content["task"]["codec"])
    nets.load_state_dict(world_content["task"]["average"])
    if checkpoint_path(run, "narrator").exists():
        narrator = read_checkpoint(checkpoint_path(run, "narrator"), device)
        nets.narrator.load_state_dict(narrator["task"]["narrator"])
    record = TrainingRecord(seed, int(codec_content["step"]), int(world_content["step"]))
    parts = PocketParts(
        codec,
        nets.text,
        nets.world,
        nets.narrator,
        config,
        Vocabulary.of_grammar(),
        NarrationVocabulary.of_grammar(),
    )
    return save_pocket(to, parts, record)


def main() -> None:
    """Read the command line and export."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--run", type=Path, required=True, help="directory of the checkpoints")
    parser.add_argument("--to", type=Path, default=SHIPPED_WEIGHTS, help="weights file to write")
    parser.add_argument("--preset", choices=("pocket", "tiny"), default="pocket")
    options = parser.parse_args()
    version = export(options.run, options.to, options.preset)
    print(f"{options.to}: version {version}")  # noqa: T201


if __name__ == "__main__":
    main()
