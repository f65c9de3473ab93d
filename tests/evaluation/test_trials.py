"""The trials, on the simulator's own pictures: perfect ones, and each fault alone."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from simulated_rig import Faults, simulated

from reverie.evaluation import trials
from reverie.evaluation.model_rig import Ints, Pictures
from reverie.evaluation.narration import QUESTIONS, try_narration, try_narration_walking
from reverie.evaluation.samples import Sample, estimate
from reverie.evaluation.trials import (
    Trial,
    random_walk,
    try_actions,
    try_long_walks,
    try_memory,
    try_prompts,
    try_short_walks,
    try_standing,
)
from reverie.evaluation.worlds import Stream, draw_worlds, true_states
from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.simulator.simulator import WorldState, advance

WORLDS = draw_worlds(Stream.WALKS, 8)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walk as far as it takes to see a fault."""
    monkeypatch.setattr(trials, "SHORT_FRAMES", 20)
    monkeypatch.setattr(trials, "LONG_FRAMES", 40)
    monkeypatch.setattr(trials, "STILL_FRAMES", 20)


def figures(samples: Iterable[Sample]) -> dict[str, float]:
    """Return the mean of every measure."""
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.measure, []).append(sample)
    return {name: estimate(own, share=False).value for name, own in found.items()}


def run(trial: Trial, faults: Faults | None = None) -> dict[str, float]:
    return figures(trial(simulated(faults), WORLDS))


def test_perfect_pictures_succeed_in_everything() -> None:
    assert run(try_actions) == {"codec": pytest.approx(100), "actions": 1}
    assert run(try_prompts) == {"prompt_colours": 1, "prompt_kept": 1}
    assert run(try_memory) == {"memory": pytest.approx(100)}
    standing = {"still_tiles": 1, "still_colours": 1, "still_walker": 1, "still_kept": 1}
    assert run(try_standing) == standing
    short, long = run(try_short_walks), run(try_long_walks)
    assert 0.2 < short.pop("true_commonest") < 0.7
    assert 0.2 < short.pop("walk_100_commonest") < 0.7
    assert 0.2 < long.pop("walk_100_commonest") < 0.7
    assert 0.2 < long.pop("walk_1000_commonest") < 0.7
    assert short == {"walk_100_tiles": 1, "late_prompt_colours": 1, "late_prompt_kept": 1}
    assert long == {
        "walk_100_tiles": 1, "walk_1000_tiles": 1, "walk_1000_colours": 1, "walk_walker": 1
    }  # fmt: skip


def test_every_action_is_tried_twice_from_one_state_in_every_world() -> None:
    found = [s for s in try_actions(simulated(), WORLDS) if s.measure == "actions"]
    assert len(found) == 2 * len(Action) * len(WORLDS)


def test_one_wrong_action_of_five_is_found() -> None:
    def left_is_right(actions: Ints) -> Ints:
        return np.where(actions == Action.LEFT, Action.RIGHT, actions)

    found = try_actions(simulated(Faults(actions=left_is_right)), WORLDS)
    tried = [sample.total for sample in found if sample.measure == "actions"]
    by_action = np.array(tried).reshape(2, len(Action), len(WORLDS))[0].mean(axis=1)
    assert by_action.tolist() == [1, 1, 1, 0, 1]


def test_walkers_who_stay_follow_one_action_of_five() -> None:
    stay = Faults(actions=np.zeros_like)
    assert run(try_actions, stay)["actions"] == pytest.approx(0.2)


def test_shuffled_palettes_are_found_and_the_map_is_still_kept() -> None:
    def shuffle(state: WorldState) -> WorldState:
        return replace(state, hour=(state.hour + 1) % 3)

    assert run(try_prompts, Faults(recolour=shuffle)) == {"prompt_colours": 0, "prompt_kept": 1}


def test_an_ignored_prompt_is_found() -> None:
    def ignore(_: WorldState) -> WorldState:
        return true_states(WORLDS)

    assert run(try_prompts, Faults(recolour=ignore))["prompt_colours"] == 0


def test_another_map_after_a_prompt_is_found() -> None:
    def elsewhere(state: WorldState) -> WorldState:
        return replace(state, seed=state.seed + 1)

    found = run(try_prompts, Faults(recolour=elsewhere))
    assert found["prompt_colours"] == 1
    assert found["prompt_kept"] < 0.6


def test_damage_to_a_quarter_of_the_picture_is_found() -> None:
    def damage(pictures: Pictures) -> Pictures:
        made = pictures.copy()
        made[:, :64, :64] = 255 - made[:, :64, :64]
        return made

    walks = run(try_long_walks, Faults(paint=damage))
    assert 0.6 < walks["walk_1000_tiles"] < 0.85
    assert run(try_standing, Faults(paint=damage))["still_tiles"] < 0.85
    assert run(try_memory, Faults(paint=damage))["memory"] < 15
    assert run(try_actions, Faults(paint=damage))["codec"] < 15


def test_a_world_that_fades_loses_its_colours() -> None:
    def fade(pictures: Pictures) -> Pictures:
        return (pictures // 2 + 64).astype(np.uint8)

    found = run(try_standing, Faults(paint=fade))
    assert found["still_tiles"] < 0.7
    assert found["still_colours"] < 0.5


def test_land_that_changes_while_the_walker_stands_is_found() -> None:
    def drift(state: WorldState) -> WorldState:
        return replace(state, seed=state.seed + 1)

    found = run(try_standing, Faults(walk=drift))
    assert found["still_tiles"] == 1
    assert found["still_kept"] < 0.6


def test_a_walker_who_turns_while_he_stands_is_found() -> None:
    def turn(state: WorldState) -> WorldState:
        return replace(state, facing=(state.clock + 1) % 4)

    found = run(try_standing, Faults(walk=turn))
    assert found["still_tiles"] == 1
    assert found["still_walker"] == pytest.approx(0.0)  # he is looked at in frames 10 and 20


def test_land_that_is_forgotten_on_the_way_is_found() -> None:
    def forget(state: WorldState) -> WorldState:
        return replace(state, seed=state.seed + (state.clock == 4))

    assert run(try_memory, Faults(walk=forget))["memory"] < 15


def test_true_words_succeed() -> None:
    assert run(try_narration) == {"narration_facts": 1, "narration_answers": 1}
    assert run(try_narration_walking) == {"narration_walking": 1}
    found = list(try_narration(simulated(), WORLDS))
    facts = [sample.trials for sample in found if sample.measure == "narration_facts"]
    assert min(facts) >= 7  # biome, hour, what he does, and four directions
    answers = [sample for sample in found if sample.measure == "narration_answers"]
    assert len(answers) == QUESTIONS * len(WORLDS)


def test_words_about_a_wrong_biome_are_found() -> None:
    def swap(text: str) -> str:
        return text.replace("a snowy land", "a candy land").replace("a neon city", "a snowy land")

    found = run(try_narration, Faults(speak=swap))
    assert 0.9 < found["narration_facts"] < 1
    assert 0.8 < found["narration_answers"] < 1


def test_a_wrong_side_is_found() -> None:
    found = run(try_narration, Faults(speak=lambda text: text.replace("to the left", "above")))
    assert 0.7 < found["narration_facts"] < 1
    assert 0.7 < found["narration_answers"] < 1


def test_a_wrong_direction_of_walking_is_found() -> None:
    def left_is_right(actions: Ints) -> Ints:
        return np.where(actions == Action.LEFT, Action.RIGHT, actions)

    found = run(try_narration_walking, Faults(actions=left_is_right))
    assert 0.8 < found["narration_walking"] < 1


@pytest.mark.parametrize("speech", ["", "la la la.", "i see dragons to the left."])
def test_silence_and_babble_are_not_true(speech: str) -> None:
    found = run(try_narration, Faults(speak=lambda _: speech))
    assert found == {"narration_facts": 0, "narration_answers": 0}


def test_walks_are_random_and_the_same_again() -> None:
    first, again = (np.stack(list(random_walk(WORLDS, 200))) for _ in range(2))
    assert np.array_equal(first, again)
    assert set(np.unique(first)) == set(Action)
    assert 0.7 < (first[1:] == first[:-1]).mean() < 0.95


@pytest.mark.parametrize("way", [Action.UP, Action.DOWN, Action.LEFT, Action.RIGHT])
def test_what_stays_in_view_is_where_both_ends_of_the_tour_overlap(way: Action) -> None:
    start = end = true_states(WORLDS[:1])
    for _ in range(trials.TOUR_FRAMES):
        end = advance(end, np.array([way]))
    down, right = (8 * int((b - a)[0]) for a, b in ((start.y, end.y), (start.x, end.x)))
    seen = np.zeros((128, 128), bool)
    seen[trials._stayed(way)] = True
    overlap = np.zeros((128, 128), bool)
    overlap[max(0, down) : 128 + min(0, down), max(0, right) : 128 + min(0, right)] = True
    assert np.array_equal(seen, overlap)
