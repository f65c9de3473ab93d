"""Named sizes and schedules."""

from dataclasses import dataclass

from reverie.models.pocket.config import (
    CodecConfig,
    NarratorConfig,
    PocketConfig,
    TextConfig,
    WorldConfig,
)
from reverie.models.pocket.narration.vocabulary import MOST_TOKENS, NarrationVocabulary
from reverie.models.pocket.network.vocabulary import Vocabulary
from reverie.models.pocket.training.codec_training import CodecSchedule
from reverie.models.pocket.training.narrator_training import NarratorSchedule
from reverie.models.pocket.training.options import Preset
from reverie.models.pocket.training.world_training import WorldSchedule


@dataclass(frozen=True, slots=True)
class Recipe:
    """The sizes and schedules of a preset."""

    config: PocketConfig
    codec: CodecSchedule
    world: WorldSchedule
    narrator: NarratorSchedule


def recipe(preset: Preset) -> Recipe:
    """Return the sizes and schedules of `pocket` (shipped) or `tiny` (for tests)."""
    words = len(Vocabulary.of_grammar())
    narrator = NarratorConfig(len(NarrationVocabulary.of_grammar()), MOST_TOKENS)
    if preset == "pocket":
        return Recipe(
            PocketConfig(TextConfig(words), narrator),
            CodecSchedule(),
            WorldSchedule(),
            NarratorSchedule(),
        )
    config = PocketConfig(
        text=TextConfig(words, width=32, heads=2, layers=1),
        narrator=narrator,
        codec=CodecConfig(encoder_width=16, decoder_width=8, decoder_blocks=1),
        world=WorldConfig(
            width=32, heads=2, layers=2, hidden=32, condition=16, text_width=32, window=4
        ),
    )
    return Recipe(
        config,
        CodecSchedule(steps=4, batch=2, warmup=1),
        WorldSchedule(
            steps=4,
            clips=2,
            frames=3,
            warmup=1,
            walks=2,
            groups=2,
            walks_after=1,
            walk_frames=2,
            tell_every=2,
            told_clips=2,
            told_walks=1,
            texts=2,
        ),
        NarratorSchedule(steps=2, clips=2, texts=2, warmup=1),
    )
