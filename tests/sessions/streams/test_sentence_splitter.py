"""From words to phrases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.sessions.streams.sentence_splitter import LONGEST_WORDS, SentenceSplitter


@pytest.mark.parametrize(
    ("text", "sentences"),
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
def test_a_phrase_ends_with_a_sentence_a_clause_or_the_text(
    text: str, sentences: list[str]
) -> None:
    assert SentenceSplitter().add(text, final=True) == sentences


def test_a_phrase_is_whole_as_soon_as_its_last_word_is() -> None:
    sentences = SentenceSplitter()
    assert sentences.add("I see ", final=False) == []
    assert sentences.add("a la", final=False) == []
    assert sentences.add("ke. It ", final=False) == ["I see a lake."]
    assert sentences.add("", final=True) == ["It"]


def test_text_without_punctuation_is_spoken_in_parts() -> None:
    words = [f"word{number}" for number in range(30)]
    spoken = SentenceSplitter().add(" ".join(words), final=True)
    assert [len(phrase.split()) for phrase in spoken] == [LONGEST_WORDS, LONGEST_WORDS, 2]


@given(st.lists(st.text(alphabet="ab .,!?", max_size=12), max_size=20))
def test_every_word_is_spoken_once_and_in_order_however_it_is_cut_up(context: list[str]) -> None:
    sentences = SentenceSplitter()
    spoken = [phrase for part in context for phrase in sentences.add(part, final=False)]
    spoken += sentences.add("", final=True)
    assert " ".join(spoken).split() == "".join(context).split()


def test_what_is_forgotten_is_not_spoken_later() -> None:
    sentences = SentenceSplitter()
    sentences.add("I see a la", final=False)
    sentences.clear()
    assert sentences.add("It is cold. ", final=True) == ["It is cold."]
