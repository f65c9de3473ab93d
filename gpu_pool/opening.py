"""What a session asks of the pool when it begins."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Opening:
    """A program to run.

    Attributes:
        session: unique among all sessions of the pool.
        model: the name under which the model is served.
        prompt: the whole prompt in effect; empty means that the person asked for nothing.
        parameters: those that differ from their defaults.
        trace: whether `StepTrace` emissions are wanted.
    """

    session: str
    model: str
    program: str
    seed: int
    prompt: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)
    trace: bool = False
