"""A loop of text: it says every turn back, a word a unit, and waits when no turn comes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from reverie.models.contract.blocks import BlockId
from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import LoadOptions, ModelInstance
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
class EchoState:
    """The words that are still to be said, and whether the turn has begun."""

    words: tuple[str, ...] = ()
    said: int = 0

    @property
    def blocks(self) -> tuple[BlockId, ...]:
        return ()


class EchoKernel(LoopKernel[EchoState]):
    """Listen (takes the turns, commits), then a word a unit; the last one shows the chunk."""

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


class EchoFamily:
    """The echo as a model family."""

    spec = ModelSpec(
        name="echo",
        title="Says everything back",
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

    def load(self, options: LoadOptions) -> ModelInstance:
        return ModelInstance("echo-0", self.spec, torch.device("cpu"), torch.float32, "1")

    def kernel(self, loop: str, instance: ModelInstance) -> EchoKernel:
        return EchoKernel(self.spec.loop(loop), instance)
