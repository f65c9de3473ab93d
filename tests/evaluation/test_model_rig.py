"""The served model rig, on untrained weights."""

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from tiny_pocket import tiny_weights

from reverie.evaluation.model_rig import RigParts, ServedModelRig
from reverie.evaluation.worlds import Stream, draw_worlds, true_states
from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.simulator.simulator import render

WORLDS = draw_worlds(Stream.WALKS, 3)
WAIT, LEFT, UP = (np.full(3, action) for action in (Action.WAIT, Action.LEFT, Action.UP))


@pytest.fixture(scope="module")
def parts() -> RigParts:
    # One session and three round differently in bfloat16.
    return RigParts.load(str(tiny_weights()), threads=1, sessions=4, precision="float32")


@pytest.fixture(autouse=True)
def _gives_everything_back(parts: RigParts) -> Iterator[None]:
    yield
    assert parts.instance.blocks is not None
    assert parts.instance.blocks.free == parts.instance.blocks.count


def test_the_first_picture_is_the_simulators_own(parts: RigParts) -> None:
    truth = render(true_states(WORLDS))
    with closing(ServedModelRig(parts, 1).open_sessions(WORLDS)) as sessions:
        shown = sessions.begin()
    assert shown.shape == truth.shape
    again, other = render(true_states(WORLDS[::-1])), shown[::-1]  # untrained, but it sees them
    with closing(ServedModelRig(parts, 1).open_sessions(WORLDS[::-1])) as sessions:
        assert np.array_equal(sessions.begin(), other)
    assert not np.array_equal(again, truth)


def test_actions_act_at_once_and_on_their_own_world_alone(parts: RigParts) -> None:
    with closing(ServedModelRig(parts, 2).open_sessions(WORLDS)) as sessions:
        sessions.begin()
        waited = sessions.act(WAIT)
        sessions.go_back()
        one_left = sessions.act(np.array([Action.WAIT, Action.LEFT, Action.WAIT]))
    same = [np.array_equal(*pair) for pair in zip(waited, one_left, strict=True)]
    assert same == [True, False, True]


def test_going_back_restores_the_same_state(parts: RigParts) -> None:
    with closing(ServedModelRig(parts, 2).open_sessions(WORLDS)) as sessions:
        sessions.begin()
        sessions.act(LEFT)
        first = sessions.act(UP)
        for other in (LEFT, WAIT):
            sessions.go_back()
            assert not np.array_equal(sessions.act(other), first)
        sessions.go_back()
        assert np.array_equal(sessions.act(UP), first)


def test_a_prompt_acts_on_the_next_picture_and_stays(parts: RigParts) -> None:
    def pictures(prompts: list[str] | None) -> list[np.ndarray]:
        with closing(ServedModelRig(parts, 1).open_sessions(WORLDS)) as sessions:
            sessions.begin()
            if prompts:
                sessions.say(prompts)
            return [sessions.act(WAIT) for _ in range(2)]

    said, unsaid = pictures(["a swamp at night"] * 3), pictures(None)
    assert not any(np.array_equal(*pair) for pair in zip(said, unsaid, strict=True))


def test_a_world_is_the_same_alone_and_in_a_batch(parts: RigParts) -> None:
    def last(chosen: slice) -> np.ndarray:
        worlds = WORLDS[chosen]
        with closing(ServedModelRig(parts, 1).open_sessions(worlds)) as sessions:
            sessions.begin()
            for action in (Action.LEFT, Action.LEFT, Action.WAIT):
                made = sessions.act(np.full(len(worlds), action))
        return made

    together, alone = last(slice(3)), last(slice(1, 2))
    assert np.abs(together[1].astype(int) - alone[0]).max() <= 2


def test_more_steps_make_another_picture(parts: RigParts) -> None:
    def second(steps: int) -> np.ndarray:
        with closing(ServedModelRig(parts, steps).open_sessions(WORLDS)) as sessions:
            sessions.begin()
            return sessions.act(WAIT)

    assert not np.array_equal(second(1), second(2))


def test_the_narrator_speaks_and_answers_about_what_it_sees(parts: RigParts) -> None:
    with closing(
        ServedModelRig(parts, 1).open_narration(WORLDS[:2], [Action.WAIT, Action.UP])
    ) as narration:
        assert len(narration.tell()) == 2  # untrained, it says anything or nothing
        assert len(narration.ask(["where am i", "what time is it"])) == 2
