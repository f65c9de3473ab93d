"""The stub, with a second loop that tells what its world shows and answers what it is asked.

`ar_decode` reads the state of `world_model`. It speaks when the prompt or the keys that are held in
it have changed (or every so many chunks), and answers turns, a word a unit:

    "I see p123 with left held. "      p123 is `prompt_mark` of the world's prompt
    "You said hello there under p123. "

While it speaks it keeps the cache blocks of what it saw, and checks with every word that no other
loop has written into them. Session parameters make it misbehave, as those of the stub do.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from stub_model import (
    BLOCK_WIDTH,
    WINDOW,
    Fault,
    StubFamily,
    StubState,
    prompt_mark,
)
from stub_model import DEFAULTS as WORLD_DEFAULTS

from reverie.models.contract.blocks import BlockId, BlockPool
from reverie.models.contract.controls import (
    Controls,
    Merge,
    ParameterRole,
    ParameterSpec,
    Turn,
)
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import (
    BatchKey,
    Durable,
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
    CacheSpec,
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    InputSpec,
    Lead,
    LoopSpec,
    ModelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)

LOCATION = f"{Path(__file__).resolve()}:TalkingFamily"
"""What a deployment names to serve this model."""

PARAMETERS = (
    ParameterSpec("narrate", 1.0, 0.0, 1.0, integer=True, label="Narrate", stream="narration"),
    ParameterSpec("pace", 0.0, 0.0, 1000.0, label="Words a second", role=ParameterRole.PACE),
    ParameterSpec("yields", 0.0, 0.0, 1.0, integer=True, label="Stop", role=ParameterRole.BARGE_IN),
    ParameterSpec("tell_every", 0.0, 0.0, 1e6, integer=True, label="Chunks; 0: only changes"),
    ParameterSpec("word_ms", 0.0, 0.0, 60_000.0, label="Time of one unit"),
    ParameterSpec("talk_fault", 0.0, 0.0, float(max(Fault)), integer=True),
    ParameterSpec("talk_fault_at", 0.0, 0.0, 1e6, integer=True, label="Which utterance"),
    ParameterSpec("talk_fault_always", 0.0, 0.0, 1.0, integer=True),
)
MICROPHONE = InputSpec("microphone", StreamKind.AUDIO, Merge.FIFO, 0, rate_hz=16_000)
DEFAULTS = {parameter.name: parameter.default for parameter in PARAMETERS}

Told = tuple[str, tuple[str, ...], int]
"""What the world looks like to the talker: prompt, keys that are held, and a count of chunks."""


@dataclass(frozen=True, slots=True)
class TalkState:
    """Between two words.

    Attributes:
        blocks: of what was seen, and one of its own, while an utterance is under way.
        words: what is still to be said.
        asked: turns that wait for their answer.
        told: what was last told of.
        said: utterances begun.
        seen_sum: of the blocks, when they were first seen.
    """

    parameters: dict[str, float]
    blocks: tuple[BlockId, ...] = ()
    words: tuple[str, ...] = ()
    answers: str | None = None
    asked: tuple[Turn, ...] = ()
    told: Told | None = None
    said: int = 0
    seen_sum: float = 0.0


class TalkKernel(LoopKernel[TalkState]):
    """Look (takes the controls, commits), then a word a unit; the last one shows."""

    def __init__(self, spec: LoopSpec, instance: ModelInstance, family: "TalkingFamily") -> None:
        self.spec = spec
        self._instance = instance
        self._sleep = family.sleep
        self._failed: set[int] = set()

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> TalkState:
        return TalkState({**DEFAULTS, **request.parameters})

    def plan_step(self, state: TalkState, controls: Controls) -> WorkPlan | Idle:
        if state.words:
            return self._plan("word", streams=("narration",), shows=len(state.words) == 1)
        if not controls.parameters and not _next_words(_taking(state, controls), controls):
            return Idle("nothing has changed")
        return self._plan("look", takes_controls=True, commits=True, writes=1)

    def run_step(self, batch: StepBatch[TalkState]) -> Sequence[StepResult[TalkState]]:
        self._sleep(max(unit.state.parameters["word_ms"] for unit in batch.units) / 1000)
        return [self._run(unit) for unit in batch.units]

    def cancel(self, state: TalkState) -> TalkState:
        return replace(state, words=(), blocks=(), answers=None)

    def durable(self, state: TalkState) -> Durable | None:
        version = self._instance.weights_version
        return Durable(self.spec.name, version, {}, f'{{"said": {state.said}}}')

    def revive(self, durable: Durable, request: LoopRequest, instance: ModelInstance) -> TalkState:
        assert durable.loop == self.spec.name
        return self.init_state(request, instance)

    @property
    def _pool(self) -> BlockPool:
        assert self._instance.blocks is not None, "the stub always has a pool"
        return self._instance.blocks

    def _plan(self, kind: str, **fields: Any) -> WorkPlan:
        instance = self._instance
        key = BatchKey(instance.name, instance.weights_version, self.spec.name, kind)
        return WorkPlan(kind, key, **fields)

    def _run(self, unit: StepUnit[TalkState]) -> StepResult[TalkState]:
        if unit.plan.kind == "look":
            return self._look(unit)
        state = unit.state
        self._fail_if_told(state)
        if float(self._pool.gather(state.blocks).double().sum()) != state.seen_sum:
            raise RuntimeError("another loop has written into the blocks of what was seen")
        spoken = TextOutput("narration", f"{state.words[0]} ", state.answers)
        after = replace(state, words=state.words[1:])
        return StepResult(after if after.words else self.cancel(after), (spoken,))

    def _look(self, unit: StepUnit[TalkState]) -> StepResult[TalkState]:
        state = _taking(unit.state, unit.controls)
        world = _world_state(unit.controls)
        words = tuple(_next_words(state, unit.controls).split())
        if not words:
            return StepResult(state)
        answered, waiting = state.asked[:1], state.asked[1:]
        self._pool.view(unit.blocks[0]).copy_(torch.full((BLOCK_WIDTH,), float(state.said)))
        blocks = (*(world.blocks if world else ()), *unit.blocks)
        return StepResult(
            replace(
                state,
                words=words,
                blocks=blocks,
                answers=answered[0].id if answered else None,
                asked=waiting,
                told=state.told if answered or world is None else _told(state, world),
                said=state.said + 1,
                seen_sum=float(self._pool.gather(blocks).double().sum()),
            )
        )

    def _fail_if_told(self, state: TalkState) -> None:
        fault = Fault(int(state.parameters["talk_fault"]))
        due = fault is not Fault.NONE and state.said - 1 == state.parameters["talk_fault_at"]
        if not due or (state.said in self._failed and not state.parameters["talk_fault_always"]):
            return
        self._failed.add(state.said)
        if fault is Fault.HANG:
            time.sleep(3600)
        raise RuntimeError(f"the talker was told to fail in utterance {state.said - 1}")


def _taking(state: TalkState, controls: Controls) -> TalkState:
    return replace(
        state,
        parameters={**state.parameters, **controls.parameters},
        asked=(*state.asked, *controls.turns),
    )


def _world_state(controls: Controls) -> StubState | None:
    return cast("StubState | None", controls.peers.get("world_model"))


def _told(state: TalkState, world: StubState) -> Told:
    every = int(state.parameters["tell_every"])
    return world.prompt, tuple(sorted(world.held)), world.chunk // every if every else 0


def _next_words(state: TalkState, controls: Controls) -> str:
    """Return what to say now; nothing when nothing has changed and no turn waits."""
    world = _world_state(controls)
    if state.asked:
        where = f" under p{prompt_mark(world.prompt)}" if world else ""
        return f"You said {state.asked[0].text}{where}."
    if world is None or not state.parameters["narrate"] or _told(state, world) == state.told:
        return ""
    held = " and ".join(sorted(world.held)) or "nothing"
    return f"I see p{prompt_mark(world.prompt)} with {held} held."


@dataclass(frozen=True)
class TalkingFamily(StubFamily):
    """The stub with both loops."""

    @property
    def spec(self) -> ModelSpec:
        world = super().spec
        talk = LoopSpec(
            name="ar_decode",
            components=("stub",),
            streams=(StreamSpec("narration", StreamKind.TEXT),),
            parameters=PARAMETERS,
            window_blocks=WINDOW + 1,
            chunk_blocks=1,
            reads=("world_model",),
            inputs=(MICROPHONE,),
            takes_turns=True,
            caches=("stub",),
        )
        both = ("world_model", "ar_decode")
        rows = {**world.capabilities.rows, "ar_decode": frozenset({Capability.DURABLE})}
        return ModelSpec(
            name="stub",
            title="A deterministic model for tests, that talks",
            licence="Apache-2.0",
            components=(ComponentSpec("stub", "everything"),),
            loops=(*world.loops, talk),
            programs=(
                *world.programs,
                ProgramSpec("narrated_world", both, Lead(self.lead_chunks)),
                ProgramSpec("chat", both, Lead(self.lead_chunks), {"narrate": 0.0}),
            ),
            capabilities=CapabilityMatrix(rows),
            caches=(CacheSpec("stub", both, ("context", "rebuild", "look"), (BLOCK_WIDTH,)),),
        )

    def load(self, options: LoadOptions) -> ModelInstance:
        spec = self.spec
        count = spec.blocks_a_session(options.history_chunks) * options.sessions
        return replace(super().load(options), spec=spec, blocks=BlockPool(count, (BLOCK_WIDTH,)))

    def kernel(  # type: ignore[override]
        self, loop: str, instance: ModelInstance
    ) -> LoopKernel[Any]:
        if loop == "ar_decode":
            return TalkKernel(self.spec.loop(loop), instance, self)
        return super().kernel(loop, instance)


def talk_request(session: str = "s1", **parameters: float) -> LoopRequest:
    """Return a request with every parameter of both loops filled in."""
    return LoopRequest(session, 7, "a frozen lake", {**WORLD_DEFAULTS, **DEFAULTS, **parameters})


__all__ = ["DEFAULTS", "LOCATION", "TalkKernel", "TalkState", "TalkingFamily", "talk_request"]
