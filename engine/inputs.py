"""What a session may send to a loop, once validated: one frozen value for each kind of control.

Every input carries the id of the command that made it, for the receipt. `AcceptedInputs` says which
of them one loop accepts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NewType

from reverie.models.contract.controls import KeyEdge, MediaInput, Merge
from reverie.models.contract.spec import LoopSpec

ControlId = NewType("ControlId", str)

OPENING = ControlId("opening")
"""The prompt that a session was opened with; its receipt says what the model made of it."""


@dataclass(frozen=True, slots=True)
class PromptInput:
    """The whole prompt now in effect; the newest wins."""

    control: ControlId
    text: str


@dataclass(frozen=True, slots=True)
class KeysInput:
    """Presses and releases of one `EDGES` control, in order; all of them are seen."""

    control: ControlId
    name: str
    edges: tuple[KeyEdge, ...]


@dataclass(frozen=True, slots=True)
class AxisInput:
    """A movement of one `SUM` control; movements within a step add up."""

    control: ControlId
    name: str
    value: float


@dataclass(frozen=True, slots=True)
class ParameterInput:
    """A new value of a parameter; the newest wins."""

    control: ControlId
    name: str
    value: float


@dataclass(frozen=True, slots=True)
class TurnInput:
    """A text said to the model; all are seen, oldest first."""

    control: ControlId
    text: str


@dataclass(frozen=True, slots=True)
class StreamInput:
    """A picture or a piece of sound for the input stream `name`.

    Of a `LATEST` stream the newest counts and what gives way is superseded; of a `FIFO` stream all
    are seen, oldest first.
    """

    control: ControlId
    name: str
    media: MediaInput


ControlInput = PromptInput | KeysInput | AxisInput | ParameterInput | TurnInput | StreamInput


class AcceptedInputs:
    """The kinds and names of input that one loop accepts.

    Attributes:
        prompt: whether it takes prompts.
        turns: whether it takes turns.
        parameters: the names of its parameters.
        axes: the names of its controls that are axes.
        keys: the keys of each of its controls that has keys.
        streams: its input streams, by name.
    """

    def __init__(self, loop: LoopSpec) -> None:
        self.prompt = loop.prompt_tokens > 0
        self.turns = loop.takes_turns
        self.parameters = {parameter.name for parameter in loop.parameters}
        self.axes = {spec.name for spec in loop.controls if spec.merge is Merge.SUM}
        self.keys = {
            spec.name: set(spec.keys) for spec in loop.controls if spec.merge is Merge.EDGES
        }
        self.streams = {spec.name: spec for spec in loop.inputs if spec.capacity}

    def refused(self, inputs: Sequence[ControlInput]) -> str | None:
        """Name the first input that the loop does not accept; None when it accepts all."""
        return next((_named(item) for item in inputs if not self.takes(item)), None)

    def takes(self, item: ControlInput) -> bool:
        """Tell whether the loop takes an input of that kind and name."""
        match item:
            case PromptInput():
                return self.prompt
            case TurnInput():
                return self.turns
            case ParameterInput():
                return item.name in self.parameters
            case AxisInput():
                return item.name in self.axes
            case KeysInput():
                keys = {edge.key for edge in item.edges}
                return item.name in self.keys and keys <= self.keys[item.name]
            case StreamInput():
                return item.name in self.streams


def _named(item: ControlInput) -> str:
    match item:
        case PromptInput():
            return "prompt"
        case TurnInput():
            return "turn"
        case ParameterInput():
            return f"parameter {item.name!r}"
        case AxisInput():
            return f"axis {item.name!r}"
        case KeysInput():
            keys = sorted({edge.key for edge in item.edges})
            return f"key {', '.join(keys)} of control {item.name!r}"
        case StreamInput():
            return f"input stream {item.name!r}"
