"""What a loop did, in numbers: enough to train on it, and to do it again.

A driver whose options ask for it keeps a `BehaviorRecord` of every chunk that it puts out. What is
common to all loops comes from the driver; the rest the kernel says (`LoopKernel.behavior`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reverie.models.contract.controls import Controls

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Behavior:
    """What a kernel says of the chunk that it has just committed.

    Attributes:
        prompt: the whole prompt in effect.
        actions: the key that acted, for each control where one did.
        levels: noise levels at which the model was called, from noise down; empty for a chunk that
            was given and not made.
        tensors: by name, such as `clean` for the latents and `noise` for what they were made from;
            outside of inference mode, so that a training may read them.
    """

    prompt: str = ""
    actions: Mapping[str, str] = field(default_factory=dict)
    levels: tuple[float, ...] = ()
    tensors: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BehaviorRecord:
    """One chunk that was put out.

    Attributes:
        session: whose chunk it is.
        loop: which loop made it.
        chunk: its number in the session.
        seed: the root of its randomness.
        weights_version: of the instance, when the chunk was committed.
        parameters: those in effect.
        controls: what its units took, in order; without the states of peers. A session with the
            same seed, weights and start that takes the same again makes the same chunk.
        behavior: what the kernel says; None when it says nothing.
    """

    session: str
    loop: str
    chunk: int
    seed: int
    weights_version: str
    parameters: Mapping[str, float]
    controls: tuple[Controls, ...]
    behavior: Behavior | None


@dataclass(frozen=True, slots=True)
class ActionRecord:
    """What a script asks of one chunk.

    Attributes:
        prompt: a new prompt; None leaves it.
        held: the keys that are down in this chunk, by control; a control that is not named has
            none.
        axes: a movement of each control that is an axis.
        parameters: new values.
    """

    prompt: str | None = None
    held: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    axes: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, float] = field(default_factory=dict)


NOTHING_ASKED = ActionRecord()
