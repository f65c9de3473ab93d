import numpy as np
import pytest

from reverie.models.pocket.network.vocabulary import MAX_TOKENS, UNKNOWN, Vocabulary
from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.simulator.captions import (
    append_caption,
    caption_for,
    read_caption,
    words_of,
)


def test_every_caption_of_the_grammar_reads_back_as_it_was_meant() -> None:
    rng = np.random.default_rng(7)
    for _ in range(600):
        biome = [None, *Biome][rng.integers(len(Biome) + 1)]
        hour = [None, *Hour][rng.integers(len(Hour) + 1)]
        caption = caption_for(rng, biome, hour)
        read = read_caption(caption.text)
        assert (read.biome, read.hour) == (biome, hour), caption.text


def test_the_later_clause_wins_and_keeps_what_it_does_not_name() -> None:
    rng = np.random.default_rng(1)
    old = caption_for(rng, Biome.SNOW, Hour.DAY)
    caption = append_caption(rng, old, caption_for(rng, None, Hour.NIGHT))
    assert (caption.biome, caption.hour) == (Biome.SNOW, Hour.NIGHT)
    assert read_caption(caption.text) == caption


@pytest.mark.parametrize(
    ("text", "biome", "hour"),
    [
        ("a frozen lake land", Biome.SNOW, None),
        ("Now it is NIGHT in a neon city!", Biome.NEON, Hour.NIGHT),
        ("a frozen lake land; now it is night", Biome.SNOW, Hour.NIGHT),
        ("snowy country after dark", Biome.SNOW, Hour.NIGHT),
        ("the sun sets", None, Hour.DUSK),
        ("", None, None),
        ("a purple elephant", None, None),
    ],
)
def test_texts_of_viewers_are_understood(text: str, biome: Biome | None, hour: Hour | None) -> None:
    read = read_caption(text)
    assert (read.biome, read.hour) == (biome, hour)


def test_the_same_generator_writes_the_same_caption() -> None:
    texts = {caption_for(np.random.default_rng(3), Biome.SWAMP, None).text for _ in range(3)}
    assert len(texts) == 1


def test_every_word_of_the_grammar_has_a_number() -> None:
    vocabulary = Vocabulary.of_grammar()
    rng = np.random.default_rng(2)
    for _ in range(300):
        caption = caption_for(rng, Biome(int(rng.integers(8))), Hour(int(rng.integers(3))))
        assert vocabulary.encode(caption.text).unknown_words == ()


def test_case_and_punctuation_do_not_matter() -> None:
    vocabulary = Vocabulary.of_grammar()
    assert vocabulary.encode("A frozen, LAKE land!") == vocabulary.encode("a frozen lake land")
    assert words_of("it's dark-blue") == ["its", "dark", "blue"]


def test_unknown_words_are_reported() -> None:
    prompt = Vocabulary.of_grammar().encode("a frozen zeppelin")
    assert prompt.unknown_words == ("zeppelin",)
    assert prompt.ids[2] == UNKNOWN


def test_long_prompts_are_truncated_and_reported() -> None:
    vocabulary = Vocabulary.of_grammar()
    assert vocabulary.encode("night " * MAX_TOKENS).truncated_at is None
    prompt = vocabulary.encode("night " * (MAX_TOKENS + 5))
    assert prompt.truncated_at == MAX_TOKENS
    assert len(prompt.ids) == MAX_TOKENS


def test_the_empty_prompt_has_no_tokens() -> None:
    assert Vocabulary.of_grammar().encode(" ... ").ids == ()
