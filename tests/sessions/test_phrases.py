"""From words to phrases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.sessions.phrases import LONGEST_WORDS, Phrases


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("I see a lake. It is frozen. ", ["I see a lake.", "It is frozen."]),
        ("Who is there? Nobody! ", ["Who is there?", "Nobody!"]),
        ('She said "no." Then she left', ['She said "no."', "Then she left"]),
        ("Walking north now, the lake ends. ", ["Walking north now, the lake ends."]),
        (
            "After a while of walking, the lake ends. ",
            ["After a while of walking,", "the lake ends."],
        ),
        ("3.5 metres of v1.2 ", ["3.5 metres of v1.2"]),
        ("", []),
        ("   ", []),
    ],
)
def test_a_phrase_ends_with_a_sentence_a_clause_or_the_text(text: str, phrases: list[str]) -> None:
    assert Phrases().add(text, final=True) == phrases


def test_a_phrase_is_whole_as_soon_as_its_last_word_is() -> None:
    phrases = Phrases()
    assert phrases.add("I see ", final=False) == []
    assert phrases.add("a la", final=False) == []
    assert phrases.add("ke. It ", final=False) == ["I see a lake."]
    assert phrases.add("", final=True) == ["It"]


def test_text_without_punctuation_is_spoken_in_parts() -> None:
    words = [f"word{number}" for number in range(30)]
    spoken = Phrases().add(" ".join(words), final=True)
    assert [len(phrase.split()) for phrase in spoken] == [LONGEST_WORDS, LONGEST_WORDS, 2]


@given(st.lists(st.text(alphabet="ab .,!?", max_size=12), max_size=20))
def test_every_word_is_spoken_once_and_in_order_however_it_is_cut_up(parts: list[str]) -> None:
    phrases = Phrases()
    spoken = [phrase for part in parts for phrase in phrases.add(part, final=False)]
    spoken += phrases.add("", final=True)
    assert " ".join(spoken).split() == "".join(parts).split()


def test_what_is_forgotten_is_not_spoken_later() -> None:
    phrases = Phrases()
    phrases.add("I see a la", final=False)
    phrases.clear()
    assert phrases.add("It is cold. ", final=True) == ["It is cold."]
