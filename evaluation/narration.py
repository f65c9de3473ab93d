"""The trials of narrators: their statements and answers, compared with the simulator's state."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np

from reverie.evaluation.model_rig import ModelRig
from reverie.evaluation.samples import Sample
from reverie.evaluation.trials import BACK, one_each
from reverie.evaluation.worlds import EvaluatedWorld, true_states
from reverie.models.pocket.narration.facts import Truth, Unreadable, truths
from reverie.models.pocket.narration.questions import ask
from reverie.models.pocket.narration.sentences import facts
from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.simulator.simulator import advance

QUESTIONS = 6
"""Asked in each world, one after another."""


def try_narration(model_rig: ModelRig, worlds: Sequence[EvaluatedWorld]) -> Iterator[Sample]:
    """Let narrators describe true first pictures, and ask them questions.

    A narrator that says nothing counts as one untrue statement.
    """
    waiting = np.full(len(worlds), Action.WAIT)
    told_of = truths(true_states(worlds), waiting)
    with closing(model_rig.open_narration(worlds, [Action.WAIT] * len(worlds))) as narration:
        yield from _facts("narration_facts", worlds, told_of, narration.tell())
        rngs = [np.random.default_rng([world.seed, 3]) for world in worlds]
        for _ in range(QUESTIONS):
            asked = [ask(rng, truth) for rng, truth in zip(rngs, told_of, strict=True)]
            answers = narration.ask([question.text for question in asked])
            right = [
                question.answered(answer, truth)
                for question, answer, truth in zip(asked, answers, told_of, strict=True)
            ]
            yield from one_each("narration_answers", worlds, right)


def try_narration_walking(
    model_rig: ModelRig, worlds: Sequence[EvaluatedWorld]
) -> Iterator[Sample]:
    """Let narrators describe the picture after one step, which the model makes."""
    ways = [list(BACK)[world.number % len(BACK)] for world in worlds]
    steps = np.array(ways)
    told_of = truths(advance(true_states(worlds), steps), steps)
    with closing(model_rig.open_narration(worlds, ways)) as narration:
        yield from _facts("narration_walking", worlds, told_of, narration.tell())


def _facts(
    measure: str, worlds: Sequence[EvaluatedWorld], told_of: Sequence[Truth], texts: Sequence[str]
) -> Iterator[Sample]:
    for world, truth, text in zip(worlds, told_of, texts, strict=True):
        stated = facts(text) or (Unreadable(text),)
        true = sum(truth.holds(fact) for fact in stated)
        yield Sample(measure, world.seed, true, len(stated))
