"""The narrator's loop, `ar_decode`: it looks at what the world's loop has made, and says it.

An utterance is: a look (one pass over the slots; takes the turns), the opening (a topic or a
question is read, and the first token found), then a token a unit. A look that finds no news ends
without a word. Turns are answered first, in their order.
"""

from collections.abc import Sequence

from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import (
    BatchKey,
    Durable,
    Idle,
    LoopKernel,
    LoopRequest,
    StepBatch,
    StepResult,
    WorkPlan,
)
from reverie.models.contract.spec import LoopSpec
from reverie.models.pocket.narration.vocabulary import END
from reverie.models.pocket.narrator.durable import durable_narrator, revived_narrator
from reverie.models.pocket.narrator.news import wants_to_look
from reverie.models.pocket.narrator.state import NarratorActivity, NarratorState, silent
from reverie.models.pocket.narrator.units import NarratorUnits, sight_of, taking
from reverie.models.pocket.network.networks import PocketNets


class NarratorKernel(LoopKernel[NarratorState]):
    """The `ar_decode` loop of pocket."""

    def __init__(self, spec: LoopSpec, nets: PocketNets, instance: ModelInstance) -> None:
        self.spec = spec
        self._instance = instance
        self._units = NarratorUnits(nets, instance)

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> NarratorState:
        """Begin silent; nothing was seen yet."""
        return NarratorState(narrate=bool(request.parameters.get("narrate", 1)))

    def plan_step(self, state: NarratorState, controls: Controls) -> WorkPlan | Idle:
        """Name the next unit."""
        if state.doing is NarratorActivity.OPENING:
            return self._plan(state, "prefill", (len(state.opening),))
        if state.doing is NarratorActivity.SPEAKING:
            last = state.line[-1] == END
            return self._plan(state, "end" if last else "decode_token", shows=last, speaks=True)
        sight = sight_of(controls)
        if sight is None or not sight.blocks:
            return Idle("there is nothing to see yet")
        # A parameter acts, and has its receipt, with a look.
        if not controls.parameters and not wants_to_look(taking(state, controls), sight.frame):
            return Idle("nothing has changed, and nobody has asked")
        return self._plan(state, "look", (len(sight.blocks),), takes=True)

    def run_step(self, batch: StepBatch[NarratorState]) -> Sequence[StepResult[NarratorState]]:
        """Run the units together."""
        return self._units.run(batch.units)

    def broken_off(self, state: NarratorState) -> NarratorState:
        """Drop what it was about to say; the turn that it was answering is done with."""
        return silent(state)

    def durable(self, state: NarratorState) -> Durable | None:
        """Keep what was told, and whether to tell."""
        return durable_narrator(state, self.spec.name, self._instance.weights_version)

    def revive(
        self, durable: Durable, request: LoopRequest, instance: ModelInstance
    ) -> NarratorState:
        """Go on watching."""
        return revived_narrator(durable)

    def _plan(
        self,
        state: NarratorState,
        kind: str,
        shape: tuple[int, ...] = (),
        *,
        takes: bool = False,
        shows: bool = False,
        speaks: bool = False,
    ) -> WorkPlan:
        if state.past is not None and state.said is not None:
            shape = (state.past.past.frames, state.said.tokens, *shape)
        key = BatchKey.of(self._instance, self.spec.name, kind, shape)
        return WorkPlan(
            kind=kind,
            batch_key=key,
            streams=("narration",) if speaks else (),
            takes_controls=takes,
            commits=takes,
            shows=shows,
        )
