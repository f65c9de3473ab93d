"""Controls: what a person does, merged into the input of one step.

A `ControlSpec` declares a control of a loop and how several inputs of one step merge:

    latest  the newest wins (a prompt, a slider)
    sum     they add up (mouse movement)
    edges   all presses and releases are kept, in order (keys, clicks)
    fifo    all are kept, in order (text turns)

Each rule has its own field in `Controls`, so that a kernel knows what a number means.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from reverie.models.contract.blocks import LoopState


class Merge(StrEnum):
    """How several inputs of one control within one step become one."""

    LATEST = "latest"
    SUM = "sum"
    EDGES = "edges"
    FIFO = "fifo"


class Drag(StrEnum):
    """Which way a person drags the picture to move an axis."""

    NONE = ""
    X = "x"
    Y = "y"


class ParameterRole(StrEnum):
    """What the runtime itself uses a parameter for."""

    NONE = ""
    PACE = "pace"
    """The most units a second that a loop of text puts out; 0 sets no limit."""
    BARGE_IN = "barge_in"
    """At 1, speech that a client pushes interrupts the loop of text."""


@dataclass(frozen=True, slots=True)
class ControlSpec:
    """One control that a loop takes.

    Attributes:
        name: what a command calls it, such as `move`.
        merge: `EDGES` for keys, `SUM` for an axis.
        keys: the legal keys of an `EDGES` control; empty for an axis.
        low: least value of one input of a `SUM` control.
        high: greatest value of one input of a `SUM` control.
        label: the text that a client shows.
        bindings: for a key, what presses it in a client: a `KeyboardEvent.code` such as
            `Space` or `KeyE`, `MouseLeft` or `MouseRight`. A client chooses for keys without one:
            letters and digits by their names, directions (`up`, `forward`, ...) by the arrow keys.
        drag: of a `SUM` control, which way the picture is dragged to move it.
    """

    name: str
    merge: Merge
    keys: tuple[str, ...] = ()
    low: float = -1.0
    high: float = 1.0
    label: str = ""
    bindings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    drag: Drag = Drag.NONE


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """A number that may be changed while a session runs, with its range.

    Attributes:
        integer: whether it is whole; from 0 to 1 it is a switch.
        label: the text that a client shows; empty: the client does not show the parameter.
        stream: the output of its loop that it switches on and off; a client shows it there.
        role: what the runtime uses it for.
    """

    name: str
    default: float
    low: float
    high: float
    integer: bool = False
    label: str = ""
    stream: str = ""
    role: ParameterRole = ParameterRole.NONE

    @property
    def is_switch(self) -> bool:
        """Whether it is either on or off."""
        return self.integer and (self.low, self.high) == (0, 1)


@dataclass(frozen=True, slots=True)
class KeyEdge:
    """A key that went down or up."""

    key: str
    down: bool


@dataclass(frozen=True, slots=True)
class KeyInput:
    """What a control with keys did in one step.

    Attributes:
        edges: every press and release since the last step, in order.
        held: the keys that are down after them, in the order of their presses.
    """

    edges: tuple[KeyEdge, ...] = ()
    held: tuple[str, ...] = ()

    def presses(self, key: str) -> int:
        """Return how often `key` went down within the step."""
        return sum(edge.down and edge.key == key for edge in self.edges)

    def acting(self) -> str | None:
        """Return the one key that a model with a single action a step should act on.

        A tap (pressed and released within the step) comes first, because no later step sees it;
        then the key that was pressed last of those that are held.
        """
        for edge in self.edges:
            if edge.down and edge.key not in self.held:
                return edge.key
        return self.held[-1] if self.held else None


@dataclass(frozen=True, slots=True, eq=False)
class MediaInput:
    """A picture or a piece of sound that was pushed into an input stream.

    Attributes:
        pts_us: when it was captured, on the client's clock.
        data: a picture, uint8 [H, W, 3] in the size that the `InputSpec` declares; or sound,
            float32 [samples, channels] in -1..1 at the declared rate. It must not be modified.
        last: whether it ends a clip, or is a single picture; what follows belongs to another.
    """

    pts_us: int
    data: NDArray[np.uint8] | NDArray[np.float32]
    last: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """A text for the model to answer.

    Attributes:
        id: what the answer names (`TextOutput.answers`); empty when the client gave none.
    """

    text: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Controls:
    """Everything that came for a loop since the last step that took controls.

    Attributes:
        prompt: the whole prompt in effect, when it has changed; None leaves it as it was.
        keys: a `KeyInput` for each `EDGES` control that is held or has moved.
        axes: the sum of each `SUM` control.
        parameters: the newest value of each parameter that was changed.
        turns: the oldest turn that no step has taken yet; later ones wait.
        media: what came into each input stream since then, oldest first.
        peers: for each loop that `LoopSpec.reads` names, its newest state whose frames are out.
            Valid while the step runs; a state that keeps its block ids shares the blocks.
    """

    prompt: str | None = None
    keys: Mapping[str, KeyInput] = field(default_factory=dict)
    axes: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, float] = field(default_factory=dict)
    turns: tuple[Turn, ...] = ()
    media: Mapping[str, tuple[MediaInput, ...]] = field(default_factory=dict)
    peers: Mapping[str, LoopState] = field(default_factory=dict)


NO_CONTROLS = Controls()
