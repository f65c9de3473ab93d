"""A model rig on which the simulator makes the pictures, without faults or with one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reverie.evaluation.model_rig import Ints, Pictures
from reverie.evaluation.worlds import EvaluatedWorld, true_states
from reverie.models.pocket.narration.facts import Direction, truths
from reverie.models.pocket.narration.questions import ask
from reverie.models.pocket.narration.sentences import say_doing, say_place, say_side
from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.simulator.captions import read_caption
from reverie.models.pocket.simulator.simulator import WorldState, advance, render

Actions = Callable[[Ints], Ints]
States = Callable[[WorldState], WorldState]
Paint = Callable[[Pictures], Pictures]


@dataclass
class Faults:
    """What goes wrong.

    Attributes:
        actions: what walkers do instead.
        recolour: what worlds look like after a prompt, instead of what it asks for.
        paint: what becomes of every picture.
        walk: where worlds are after a step, instead of where they should be.
        speak: what becomes of what narrators say.
    """

    actions: Actions = lambda actions: actions
    recolour: States = lambda state: state
    paint: Paint = lambda pictures: pictures
    walk: States = lambda state: state
    speak: Callable[[str], str] = lambda text: text


class SimulatedSessions:
    """Worlds of the simulator with the interface of served sessions."""

    def __init__(self, worlds: Sequence[EvaluatedWorld], faults: Faults) -> None:
        self._state = self._before = true_states(worlds)
        self._faults = faults
        self.closed = False

    def begin(self) -> Pictures:
        return self._shown()

    def act(self, actions: Ints) -> Pictures:
        self._before = self._state
        self._state = self._faults.walk(advance(self._state, self._faults.actions(actions)))
        return self._shown()

    def say(self, prompts: Sequence[str]) -> None:
        named = [read_caption(prompt) for prompt in prompts]
        biomes, hours = self._state.biome.tolist(), self._state.hour.tolist()
        asked = replace(
            self._state,
            biome=np.array([_named(n.biome, old) for n, old in zip(named, biomes, strict=True)]),
            hour=np.array([_named(n.hour, old) for n, old in zip(named, hours, strict=True)]),
        )
        self._state = self._faults.recolour(asked)

    def go_back(self) -> None:
        self._state = self._before

    def close(self) -> None:
        self.closed = True

    def _shown(self) -> Pictures:
        return self._faults.paint(render(self._state))


def _named(name: int | None, current: int) -> int:
    return current if name is None else int(name)


class SimulatedNarration:
    """Narrators that know the truth, with the interface of served ones."""

    def __init__(
        self, worlds: Sequence[EvaluatedWorld], ways: Sequence[Action], faults: Faults
    ) -> None:
        steps = faults.actions(np.array(ways))
        self._truths = truths(advance(true_states(worlds), steps), steps)
        self._rngs = [np.random.default_rng([world.seed, 3]) for world in worlds]
        self._faults = faults

    def tell(self) -> list[str]:
        said = [
            " ".join((say_place(t), say_doing(t), *(say_side(t, way) for way in Direction)))
            for t in self._truths
        ]
        return [self._faults.speak(text) for text in said]

    def ask(self, questions: Sequence[str]) -> list[str]:
        asked = [ask(rng, truth) for rng, truth in zip(self._rngs, self._truths, strict=True)]
        assert [question.text for question in asked] == list(questions)
        return [self._faults.speak(question.answer) for question in asked]

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class SimulatedModelRig:
    """A model rig on which the simulator makes the pictures."""

    faults: Faults

    def open_sessions(self, worlds: Sequence[EvaluatedWorld]) -> SimulatedSessions:
        return SimulatedSessions(worlds, self.faults)

    def open_narration(
        self, worlds: Sequence[EvaluatedWorld], ways: Sequence[Action]
    ) -> SimulatedNarration:
        return SimulatedNarration(worlds, ways, self.faults)


def simulated(faults: Faults | None = None) -> SimulatedModelRig:
    """Return a model rig on which the simulator makes the pictures."""
    return SimulatedModelRig(faults or Faults())
