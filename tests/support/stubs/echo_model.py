"""A loop of text: it repeats every turn, a word a unit, and is idle without turns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weightless import WeightlessFamily, WithoutBlocks

from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import (
    BatchKey,
    Idle,
    LoopKernel,
    LoopRequest,
    StepBatch,
    StepResult,
    StepUnit,
    TextOutput,
    WorkPlan,
)
from reverie.models.contract.spec import (
    CapabilityMatrix,
    ComponentSpec,
    LoopSpec,
    ModelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)


@dataclass(frozen=True, slots=True)
class EchoState(WithoutBlocks):
    """The words that are still to be said, and how many were."""

    words: tuple[str, ...] = ()
    said: int = 0


class EchoKernel(LoopKernel[EchoState]):
    """Takes the turns and commits, then puts out a word a unit; the last one shows the chunk."""

    def __init__(self, spec: LoopSpec, instance: ModelInstance) -> None:
        self.spec = spec
        self._instance = instance

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> EchoState:
        return EchoState()

    def plan_step(self, state: EchoState, controls: Controls) -> WorkPlan | Idle:
        if not state.words and not controls.turns:
            return Idle("no turn waits")
        kind = "speak" if state.words else "listen"
        key = BatchKey(self._instance.name, "1", self.spec.name, kind)
        return WorkPlan(
            kind,
            key,
            streams=("text",) if state.words else (),
            takes_controls=not state.words,
            commits=not state.words,
            shows=len(state.words) == 1,
        )

    def run_step(self, batch: StepBatch[EchoState]) -> Sequence[StepResult[EchoState]]:
        return [self._run(unit) for unit in batch.units]

    def _run(self, unit: StepUnit[EchoState]) -> StepResult[EchoState]:
        state = unit.state
        if not state.words:
            said = " ".join(turn.text for turn in unit.controls.turns)
            words = tuple(said.split())
            return StepResult(replace(state, words=words))
        spoken = TextOutput("text", f"{state.words[0]} ")
        return StepResult(EchoState(state.words[1:], state.said + 1), (spoken,))


class EchoFamily(WeightlessFamily):
    """The echo of text as a model family."""

    spec = ModelSpec(
        name="echo",
        title="Repeats every turn",
        licence="Apache-2.0",
        components=(ComponentSpec("echo", "everything"),),
        loops=(
            LoopSpec(
                "ar_decode",
                ("echo",),
                (StreamSpec("text", StreamKind.TEXT),),
                takes_turns=True,
            ),
        ),
        programs=(ProgramSpec("chat", ("ar_decode",)),),
        capabilities=CapabilityMatrix({}),
    )

    def kernel(self, loop: str, instance: ModelInstance) -> EchoKernel:
        return EchoKernel(self.spec.loop(loop), instance)
