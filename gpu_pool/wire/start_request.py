"""What a session asks of the pool when it begins."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reverie.gpu_pool.wire.shares import Accounts


@dataclass(frozen=True, slots=True)
class ForkOrigin:
    """Where a session forks from another one of the same model.

    Attributes:
        session: the other one, which continues by itself.
        chunk: the newest chunk that was seen of it; None parts from its newest.
        exact: that very chunk is wanted, and no other will do.
        seen_of: the loop whose chunk it is; empty for the leading one.
    """

    session: str
    chunk: int | None
    exact: bool = False
    seen_of: str = ""


@dataclass(frozen=True, slots=True)
class StartRequest:
    """A program to run.

    Attributes:
        session: unique among all sessions of the pool.
        model: the name under which the model is served.
        prompt: the whole prompt in effect; empty means that the person asked for nothing.
        parameters: those that differ from their defaults.
        stop: texts that end an answer.
        origin: what it continues from; None begins a new session. A fork waits in no queue,
            because its origin would continue meanwhile.
        accounts: what its slot is counted under (`shares.py`); stays in this process.
    """

    session: str
    model: str
    program: str
    seed: int
    prompt: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)
    origin: ForkOrigin | None = None
    stop: tuple[str, ...] = ()
    accounts: Accounts = ()
