"""The state of a narrator: an immutable value that shares the cache blocks of what it sees."""

from dataclasses import dataclass, replace
from enum import StrEnum

from reverie.models.contract.blocks import BlockId
from reverie.models.contract.controls import Turn
from reverie.models.pocket.narration.facts import SLOTS
from reverie.models.pocket.narration.vocabulary import Topic
from reverie.models.pocket.network.narrator import SpokenTokens
from reverie.models.pocket.world.past_rows import PocketPastRow

Glance = tuple[int, ...]
"""What each slot read, as tokens; 0 before the first look."""
NOTHING_SEEN: Glance = (0,) * SLOTS


class NarratorActivity(StrEnum):
    """What a narrator does next."""

    WATCHING = "watching"
    OPENING = "opening"
    """It has looked, and reads the topic or the question next."""
    SPEAKING = "speaking"


@dataclass(frozen=True, slots=True)
class NarratorState:
    """The state of one narrator.

    Attributes:
        narrate: whether it speaks unasked.
        activity: what comes next.
        blocks: cache blocks of the frames that it sees, shared with the world's loop until the
            utterance ends.
        past: the same frames as attention reads them.
        said: the text's cache.
        opening: tokens of the prefill: notes, and a topic or a question.
        line: the next token to say; after it `END`, once that is known.
        before: the token that was said last.
        spoken: tokens of the utterance so far.
        answers: id of the turn that it answers.
        asked: turns that wait, oldest first.
        looked_at: frame of the last look; -1 before the first.
        spoke_at: frame at which it last spoke unasked.
        glance: what the last look read.
        told: what was last said of each slot.
        topics: ordered by when they were spoken of, the longest ago first.
        utterances: number of utterances that have begun.
    """

    narrate: bool
    activity: NarratorActivity = NarratorActivity.WATCHING
    blocks: tuple[BlockId, ...] = ()
    past: PocketPastRow | None = None
    said: SpokenTokens | None = None
    opening: tuple[int, ...] = ()
    line: tuple[int, ...] = ()
    before: int | None = None
    spoken: int = 0
    answers: str | None = None
    asked: tuple[Turn, ...] = ()
    looked_at: int = -1
    spoke_at: int = -1
    glance: Glance = NOTHING_SEEN
    told: Glance = NOTHING_SEEN
    topics: tuple[Topic, ...] = tuple(Topic)
    utterances: int = 0


def without_utterance(state: NarratorState) -> NarratorState:
    """Return the state without the utterance in progress."""
    return replace(
        state,
        activity=NarratorActivity.WATCHING,
        blocks=(),
        past=None,
        said=None,
        opening=(),
        line=(),
        before=None,
        spoken=0,
        answers=None,
    )
