"""A record of what a loop did: enough to train on it, and to repeat it.

A driver whose options ask for it keeps a `BehaviorRecord` of every chunk that it puts out. The
driver fills in what is common to all loops, and the kernel the rest (`LoopKernel.behavior`).
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
    """What a kernel records about the chunk that it has just committed.

    Attributes:
        prompt: the whole prompt in effect.
        actions: the key that acted, for each control where one did.
        levels: noise levels at which the model was called, highest first; empty for a chunk that
            came from outside.
        tensors: by name, such as `clean` for the latents and `noise` for the noise that they
            started from; outside of inference mode, so that training can use them.
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
        controls: what its units took, in order, without the states of peers. A session with the
            same seed, weights and start that takes the same controls makes the same chunk.
        behavior: the kernel's part; None when it records nothing.
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
    """What a script does during one chunk.

    Attributes:
        prompt: a new prompt; None keeps the current one.
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
