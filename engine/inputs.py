"""What a session may send to its loop, once validated: one frozen value for each kind of control.

Every input carries the id of the command that made it, for the receipt.
"""

from dataclasses import dataclass
from typing import NewType

from reverie.models.contract.controls import KeyEdge, MediaInput

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
