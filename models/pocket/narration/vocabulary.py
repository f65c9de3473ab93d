"""The narrator's tokens: marks, slots, topics, and the words of questions and sentences.

A text of the narrator is, in this order: one slot for each thing that a look reads, then either a
topic and a sentence about it, or a question and its answer. A slot's output is the narrator's
reading of that slot: one pass over the slots is a look at the picture. The readings are written as
words after the slots, the notes, before anything is said, so that a search in them does not need to
wait for the last block.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import product

from reverie.models.pocket.narration.facts import REACH, SLOTS, Direction, Slot, Truth, tile_slot
from reverie.models.pocket.narration.questions import question_words
from reverie.models.pocket.narration.sentences import (
    BARE,
    COUNTS,
    FACINGS,
    HOURS,
    LANDS,
    NOWHERE,
    SIDES,
    THINGS,
    WHEN,
)
from reverie.models.pocket.simulator.biomes import Biome

PAD, UNKNOWN, END, ASK, ANSWER = range(5)
_MARKS = 5
MOST_ASKED = 16
"""Longest question, in words."""
MOST_SAID = 24
"""Longest sentence or answer, in tokens, with its end."""


class Topic(IntEnum):
    """What a sentence can be about."""

    PLACE = 0
    DOING = 1
    LEFT = 2
    RIGHT = 3
    UP = 4
    DOWN = 5


SIDE_OF: dict[Topic, Direction] = {
    Topic.LEFT: Direction.LEFT,
    Topic.RIGHT: Direction.RIGHT,
    Topic.UP: Direction.UP,
    Topic.DOWN: Direction.DOWN,
}
SLOT_IDS = tuple(range(_MARKS + len(Topic), _MARKS + len(Topic) + SLOTS))
MOST_TOKENS = 2 * SLOTS + 2 + MOST_ASKED + MOST_SAID
_TOKEN = re.compile(r"[a-z0-9']+|[.,]")


def topic_slots(topic: Topic) -> tuple[int, ...]:
    """Return the slots that a topic is about."""
    if topic is Topic.PLACE:
        return (Slot.BIOME, Slot.HOUR)
    if topic is Topic.DOING:
        return (Slot.WALKS, Slot.FACING)
    first = tile_slot(SIDE_OF[topic], 1)
    return tuple(range(first, first + REACH))


@dataclass(frozen=True, slots=True)
class TokenizedQuestion:
    """A question as the narrator takes it.

    Attributes:
        ids: `ASK`, at most `MOST_ASKED` words, `ANSWER`.
        unknown_words: words that are not in the training data, in order.
        truncated_at: how many words were kept when there were more, else None.
    """

    ids: tuple[int, ...]
    unknown_words: tuple[str, ...]
    truncated_at: int | None


class NarrationVocabulary:
    """Map tokens to numbers; the order of `words` is part of the weights."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self._first_word = SLOT_IDS[-1] + 1
        self._id_of = {word: self._first_word + i for i, word in enumerate(words)}

    @classmethod
    def of_grammar(cls) -> "NarrationVocabulary":
        """Return the vocabulary of all questions and sentences."""
        tables = (LANDS, HOURS, WHEN, THINGS, BARE, SIDES, FACINGS)
        said = [name for table in tables for name in table.values()]
        said += [*COUNTS, NOWHERE, "this is", "it is", "you walk", "stand and look", "i see no"]
        said += ["yes , no .", "then"]
        words = {word for text in said for word in text.split()} | question_words()
        return cls(tuple(sorted(words)))

    def __len__(self) -> int:
        return self._first_word + len(self.words)

    @property
    def unsaid(self) -> list[int]:
        """Tokens that are never said: all but words and `END`."""
        return [token for token in range(self._first_word) if token != END]

    def topic_id(self, topic: Topic) -> int:
        """Return the token that asks for a sentence about `topic`."""
        return _MARKS + topic

    def word(self, token: int) -> str:
        """Return the word or mark behind a token; empty for one that is never said."""
        index = token - self._first_word
        return self.words[index] if 0 <= index < len(self.words) else ""

    def encode(self, text: str) -> tuple[int, ...]:
        """Turn a sentence into tokens, with `END`; every word must be known."""
        return (*(self._id_of[token] for token in _TOKEN.findall(text)), END)

    def encode_question(self, text: str) -> TokenizedQuestion:
        """Turn a question into tokens; punctuation and case do not matter."""
        words = re.findall(r"[^\W_]+", text.lower().replace("'", ""))
        kept = words[:MOST_ASKED]
        return TokenizedQuestion(
            ids=(ASK, *(self._id_of.get(word, UNKNOWN) for word in kept), ANSWER),
            unknown_words=tuple(word for word in kept if word not in self._id_of),
            truncated_at=MOST_ASKED if len(words) > MOST_ASKED else None,
        )

    def glance(self, truth: Truth) -> tuple[int, ...]:
        """Return what each slot should read of a world: the notes on it."""
        bare = [
            BARE[truth.lines[direction][n]].split()[-1]
            for direction, n in product(Direction, range(REACH))
        ]
        walks = "walk" if truth.walks else "stand"
        words = (_LAND_WORDS[truth.biome], HOURS[truth.hour], walks, FACINGS[truth.facing], *bare)
        return tuple(self._id_of[word] for word in words)

    def piece(self, before: int | None, token: int, after: int) -> str:
        """Return the text of a token between two others: a whole word, with the space after it.

        A sentence begins with a capital letter; None is before the first token, `END` after the
        last one.
        """
        word, last = self.word(token), "" if before is None else self.word(before)
        if not word:
            return ""
        if last in ("", "."):
            word = word[:1].upper() + word[1:]
        elif word == "i":
            word = "I"
        return word if after == END or self.word(after) in (".", ",") else f"{word} "

    def text(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens up to the first `END`."""
        said = [*tokens[: tokens.index(END)], END] if END in tokens else [*tokens, END]
        befores = (None, *said[:-2])
        return "".join(map(self.piece, befores, said[:-1], said[1:]))


_LAND_WORDS: dict[Biome, str] = {biome: LANDS[biome].split()[1] for biome in Biome}
