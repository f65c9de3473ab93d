import numpy as np
import pytest

from reverie.models.pocket.narration.facts import (
    REACH,
    SLOTS,
    Direction,
    Does,
    IsBiome,
    IsHour,
    Lacks,
    Lies,
    Truth,
    Unreadable,
    truths,
)
from reverie.models.pocket.narration.questions import WorldQuestion, ask
from reverie.models.pocket.narration.sentences import (
    facts,
    say_doing,
    say_lies,
    say_place,
    say_side,
)
from reverie.models.pocket.narration.vocabulary import (
    MOST_ASKED,
    MOST_SAID,
    NarrationVocabulary,
    Topic,
    topic_slots,
)
from reverie.models.pocket.simulator.biomes import Action, Biome, Hour
from reverie.models.pocket.simulator.simulator import advance, tiles_in_view
from reverie.models.pocket.simulator.terrain import Tile, tiles_at
from reverie.models.pocket.simulator.walker import Facing
from reverie.models.pocket.training.states import random_states

VOCABULARY = NarrationVocabulary.of_grammar()
LINE = (Tile.GROUND, Tile.WATER, Tile.WATER)
TRUTH = Truth(Biome.SNOW, Hour.NIGHT, True, Facing.LEFT, (LINE, LINE[::-1], LINE, LINE))


def some_truths(count: int = 60) -> list[Truth]:
    rng = np.random.default_rng(5)
    return truths(random_states(rng, count), rng.integers(len(Action), size=count))


def spoken(text: str) -> str:
    """Return a text as the narrator would put it out."""
    return VOCABULARY.text(VOCABULARY.encode(text))


def test_the_lines_of_the_truth_are_the_tiles_around_his_own() -> None:
    state = random_states(np.random.default_rng(2), 40)
    told = truths(state, np.zeros(40, np.int64))
    x, y = (state.x + 8) // 2, (state.y + 8) // 2
    steps = {Direction.LEFT: (-1, 0), Direction.RIGHT: (1, 0), Direction.UP: (0, -1),
             Direction.DOWN: (0, 1)}  # fmt: skip
    for direction, (dx, dy) in steps.items():
        for n in range(1, REACH + 1):
            kinds = tiles_at(state.seed, x + n * dx, y + n * dy)
            assert [truth.lines[direction][n - 1] for truth in told] == kinds.tolist()


def test_the_truth_knows_who_walks() -> None:
    state = advance(random_states(np.random.default_rng(2), 2), np.array([0, 4]))
    still, moving = truths(state, np.array([0, 4]), tiles_in_view(state))
    assert (still.walks, moving.walks, moving.facing) == (False, True, Facing.RIGHT)


def test_every_sentence_reads_back_as_true_facts() -> None:
    for truth in some_truths():
        sides = " ".join(say_side(truth, direction) for direction in Direction)
        stated = facts(spoken(f"{say_place(truth)} {say_doing(truth)} {sides}"))
        assert len(stated) >= 7
        assert all(truth.holds(fact) for fact in stated)


@pytest.mark.parametrize(
    "fact",
    [
        IsBiome(Biome.CANDY),
        IsHour(Hour.DAY),
        Does(False, Facing.LEFT),
        Does(True, Facing.UP),
        Lies(Tile.WATER, Direction.LEFT, 1),
        Lies(Tile.TREE, Direction.LEFT, None),
        Lacks(Tile.WATER, Direction.RIGHT),
        Lacks(Tile.GROUND, None),
        Unreadable("hm"),
    ],
)
def test_a_false_fact_does_not_hold(fact: IsBiome) -> None:
    assert not TRUTH.holds(fact)


def test_a_text_that_says_nothing_counts_as_untrue() -> None:
    assert facts("Water water to the left.") == (Unreadable("water water to the left"),)


def test_facts_are_read_from_displayed_text() -> None:
    assert facts("Yes, I see water two tiles to the left. It is night.") == (
        Lies(Tile.WATER, Direction.LEFT, 2),
        IsHour(Hour.NIGHT),
    )
    assert facts("To the left I see open ground, then water.") == (
        Lies(Tile.GROUND, Direction.LEFT, 1),
        Lies(Tile.WATER, Direction.LEFT, None),
    )


def test_the_answers_of_the_grammar_are_right_and_its_words_known() -> None:
    rng = np.random.default_rng(3)
    for truth in some_truths(200):
        question = ask(rng, truth)
        assert question.answered(spoken(question.answer), truth), question
        asked = VOCABULARY.encode_question(question.text)
        assert asked.unknown_words == ()
        assert len(asked.ids) <= MOST_ASKED + 2
        assert len(VOCABULARY.encode(question.answer)) <= MOST_SAID


def test_an_answer_to_something_else_is_not_right() -> None:
    question = WorldQuestion("where is water", "", "", (Lies(Tile.WATER, Direction.RIGHT, 1),))
    assert question.answered("I see water one tile to the right.", TRUTH)
    assert not question.answered("It is night.", TRUTH)
    assert not question.answered("I see water one tile to the right. It is day.", TRUTH)
    yes = WorldQuestion("is it night", "", "yes", (IsHour(Hour.NIGHT),))
    assert yes.answered("Yes, it is night.", TRUTH)
    assert not yes.answered("No, it is night.", TRUTH)


def test_the_nearest_tile_is_named() -> None:
    assert TRUTH.nearest(Tile.WATER) == Lies(Tile.WATER, Direction.RIGHT, 1)
    assert TRUTH.nearest(Tile.HOUSE) is None
    assert say_lies(Lies(Tile.WATER, Direction.RIGHT, 1)) == "i see water one tile to the right."


def test_unknown_words_and_long_questions_are_reported() -> None:
    asked = VOCABULARY.encode_question("Where's the WATER, dear Oracle?")
    assert asked.unknown_words == ("wheres", "dear", "oracle")
    assert asked.truncated_at is None
    long = VOCABULARY.encode_question("water " * 40)
    assert (long.truncated_at, len(long.ids)) == (MOST_ASKED, MOST_ASKED + 2)


def test_every_slot_belongs_to_one_topic() -> None:
    slots = [slot for topic in Topic for slot in topic_slots(topic)]
    assert slots == list(range(SLOTS))
    glances = [VOCABULARY.glance(truth) for truth in some_truths()]
    words = [[VOCABULARY.word(token) for token in glance] for glance in glances]
    assert all(all(row) for row in words)
    assert len({tuple(row) for row in words}) > 50
