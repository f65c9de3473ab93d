"""A stage on which the simulator plays, faultlessly or with one fault."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reverie.evaluation.stage import Ints, Pictures, Stage, Theatre
from reverie.evaluation.worlds import World, true_states
from reverie.models.pocket.captions import read_caption
from reverie.models.pocket.simulator import WorldState, advance, render

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
    """

    actions: Actions = lambda actions: actions
    recolour: States = lambda state: state
    paint: Paint = lambda pictures: pictures
    walk: States = lambda state: state


class SimulatedStage:
    """Worlds of the simulator behind the interface of the served ones."""

    def __init__(self, worlds: Sequence[World], faults: Faults) -> None:
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


def simulated(faults: Faults | None = None) -> Theatre:
    """Return a theatre in which the simulator plays."""

    def theatre(worlds: Sequence[World]) -> Stage:
        return SimulatedStage(worlds, faults or Faults())

    return theatre
