"""The loop contract: the model owns the step, the runtime owns the loop.

A model author writes the three methods of `LoopKernel` and no `while`. State is an immutable value
that refers to cache blocks; `run_step` returns the next one and never edits the one it was given.
So commit is taking the new reference, rollback is dropping it, and a snapshot is keeping the old
one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from reverie.models.contract.behavior import Behavior
from reverie.models.contract.blocks import BlockId, LoopState
from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.packed_tensors import PackedTensors
from reverie.models.contract.spec import LoopSpec
from reverie.models.contract.work_plan import BatchKey, Idle, PlanOptions, WorkPlan

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "AudioOutput",
    "BatchKey",
    "Durable",
    "FrameOutput",
    "Idle",
    "LoopKernel",
    "LoopRequest",
    "Output",
    "PlanOptions",
    "PromptNotes",
    "StepBatch",
    "StepResult",
    "StepUnit",
    "TextOutput",
    "WorkPlan",
]

S = TypeVar("S", bound=LoopState)


@dataclass(frozen=True, slots=True)
class LoopRequest:
    """How a session starts a loop.

    Attributes:
        seed: the root of all randomness of the session.
        prompt: the whole prompt in effect; empty when no prompt was given.
        parameters: every parameter of the loop, defaults filled in.
        stop: texts that end an answer, for a loop that takes turns.
    """

    session: str
    seed: int
    prompt: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepUnit(Generic[S]):
    """A planned unit with all that it needs to run.

    Attributes:
        controls: those of the plan when it takes them, else `NO_CONTROLS`.
        blocks: the reserved blocks, as many as `plan.writes`.
    """

    plan: WorkPlan
    state: S
    controls: Controls
    blocks: tuple[BlockId, ...] = ()


@dataclass(frozen=True, slots=True)
class StepBatch(Generic[S]):
    """Units with equal batch keys, of different sessions, and the instance that runs them."""

    instance: ModelInstance
    units: tuple[StepUnit[S], ...]


@dataclass(frozen=True, slots=True)
class FrameOutput:
    """Frames for a video stream.

    Attributes:
        frames_FHWC: RGB, uint8, or float in 0..1 (rounded by the driver once checked). The driver
            copies it before the next step, so a kernel may reuse its buffer.
    """

    stream: str
    frames_FHWC: Tensor


@dataclass(frozen=True, slots=True)
class AudioOutput:
    """Sound for an audio stream, which continues the samples before it.

    Attributes:
        samples_NC: N samples of C channels, as many as the stream declares; float in -1..1
            (beyond is cut off), or int16. It is copied before the next step.
    """

    stream: str
    samples_NC: Tensor


@dataclass(frozen=True, slots=True)
class TextOutput:
    """Whole characters for a text stream; words include the space after them.

    A chunk of a text loop is one utterance: its first unit takes the controls and commits, each
    later one adds text, and the last one, which `shows`, ends it (its text may be empty). The
    driver numbers utterances.

    Attributes:
        answers: the id of the `Turn` that the utterance answers; None when it answers none.
    """

    stream: str
    text: str
    answers: str | None = None


Output = FrameOutput | AudioOutput | TextOutput


@dataclass(frozen=True, slots=True)
class PromptNotes:
    """What the receipt says about how a prompt or a turn was encoded.

    Attributes:
        unknown_words: words that the encoder does not know, in order.
        truncated_at: tokens that were read when the prompt was longer; None when all were.
        dropped_messages: the oldest messages of a conversation that no longer fit the context.
    """

    unknown_words: tuple[str, ...] = ()
    truncated_at: int | None = None
    dropped_messages: int = 0


@dataclass(frozen=True, slots=True)
class StepResult(Generic[S]):
    """What one unit produced.

    Attributes:
        state: the next state. The blocks it refers to are among the old state's and the unit's.
        outputs: for the streams that the plan names.
        checks: tensors that must be finite, or the step is rolled back.
        notes: set by the unit that read a prompt.
        turn_notes: notes on the turns that the unit took, by their ids.
    """

    state: S
    outputs: tuple[Output, ...] = ()
    checks: tuple[Tensor, ...] = ()
    notes: PromptNotes | None = None
    turn_notes: Mapping[str, PromptNotes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Durable:
    """The small part of a state that is enough to continue.

    Attributes:
        loop: the loop that it belongs to.
        weights_version: of the instance that made it.
        data: tensors by name, on the CPU.
        text: a JSON object with everything that is not a tensor.
    """

    loop: str
    weights_version: str
    data: Mapping[str, Tensor]
    text: str

    def __reduce__(self) -> tuple[type[Durable], tuple[str, str, PackedTensors, str]]:
        """Pickle with packed tensors: a server that keeps it for the next worker has no torch."""
        packed = PackedTensors.pack(self.data)
        return Durable, (self.loop, self.weights_version, packed, self.text)


class LoopKernel(ABC, Generic[S]):
    """One loop of a model. Called by one step thread only.

    A kernel holds no session state: everything of a session is in `S`.
    """

    spec: LoopSpec

    @abstractmethod
    def init_state(self, request: LoopRequest, instance: ModelInstance) -> S:
        """Bind a first state. Runs no model and holds no blocks."""

    @abstractmethod
    def plan_step(self, state: S, controls: Controls) -> WorkPlan | Idle:
        """Say what comes next. Pure: no kernels, no side effects, equal answers to equal input."""

    @abstractmethod
    def run_step(self, batch: StepBatch[S]) -> Sequence[StepResult[S]]:
        """Run exactly the planned units; one result each, in order."""

    def behavior(self, state: S) -> Behavior | None:
        """Describe the chunk that the unit which led to `state` has committed, or return None.

        Called only for recorded sessions, right after that unit, outside of inference mode.
        """
        return None

    def cancel(self, state: S) -> S | None:
        """Return the state after abandoning the current utterance.

        For loops of text only: text that was put out stays, the turn that was being answered is
        finished, and later turns are still answered. Runs no model, and refers to no block that
        `state` does not. None (the default) returns to the start of the utterance, which may then
        begin again.
        """
        return None

    def durable(self, state: S) -> Durable | None:
        """Return the durable part of a state at a chunk boundary; None when it has none."""
        return None

    def revive(self, durable: Durable, request: LoopRequest, instance: ModelInstance) -> S:
        """Return a state that plans the units which rebuild its derived part, and then continues.

        Raises:
            NotImplementedError: the loop has no durable part.
        """
        raise NotImplementedError(f"loop {self.spec.name} has no durable state")
