"""Pocket with few and untrained weights: the real loop, at a fraction of the cost."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import torch

from reverie.models.contract.instance import LoadOptions
from reverie.models.pocket.checkpoint import PocketParts, TrainingRecord, save_pocket
from reverie.models.pocket.config import (
    CodecConfig,
    NarratorConfig,
    PocketConfig,
    TextConfig,
    WorldConfig,
)
from reverie.models.pocket.narration.vocabulary import MOST_TOKENS, NarrationVocabulary
from reverie.models.pocket.network.codec import PictureCodec
from reverie.models.pocket.network.narrator import Narrator
from reverie.models.pocket.network.text_encoder import TextEncoder
from reverie.models.pocket.network.vocabulary import Vocabulary
from reverie.models.pocket.network.world_model import WorldModel
from reverie.models.pocket.spec import WINDOW


@cache
def tiny_weights() -> Path:
    """Write untrained weights once a process; every output layer reacts to its input."""
    vocabulary, narration = Vocabulary.of_grammar(), NarrationVocabulary.of_grammar()
    config = PocketConfig(
        text=TextConfig(len(vocabulary), width=32, heads=2, layers=1),
        narrator=NarratorConfig(len(narration), MOST_TOKENS),
        codec=CodecConfig(encoder_width=16, decoder_width=8, decoder_blocks=1),
        world=WorldConfig(
            width=32, heads=2, layers=2, hidden=32, condition=16, text_width=32, window=WINDOW
        ),
    )
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(1)
        codec, text, world = (
            PictureCodec(config.codec),
            TextEncoder(config.text),
            WorldModel(config.world),
        )
        narrator = Narrator(config.narrator, config.world)
        for parameter in world.parameters():  # zeros would hide what a block does
            torch.nn.init.normal_(parameter, std=0.2)
    folder = Path(tempfile.mkdtemp(prefix="tiny-pocket-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "pocket.safetensors"
    parts = PocketParts(codec, text, world, narrator, config, vocabulary, narration)
    save_pocket(path, parts, TrainingRecord(1, 0, 0))
    return path


def tiny_options() -> LoadOptions:
    """Load the tiny weights in float32 on one thread."""
    return LoadOptions(
        device="cpu",
        precision="float32",
        checkpoint=str(tiny_weights()),
        sessions=4,
        history_chunks=3,
        threads=1,
    )
