"""What the server asks of one session in a worker.

Requests that need an answer carry a `request` number and get exactly one `RequestDone` or
`RequestRefused`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reverie.engine.inputs import ControlInput
from reverie.engine.lead_time import LineTiming
from reverie.gpu_pool.wire.start_request import ForkOrigin
from reverie.models.contract.loop import Durable


@dataclass(frozen=True, slots=True)
class KeptSnapshot:
    """What outlives its worker of a snapshot that was taken by name.

    Attributes:
        chunk: the chunk of the leading loop that its state is after.
        durables: one for each loop that has one; its `loop` names it.
    """

    name: str
    chunk: int
    durables: tuple[Durable, ...]


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Start a program for a session.

    Attributes:
        stop: texts that end an answer.
        durables: states to continue from (after a crash); loops without one begin from the request.
        kept: snapshots that it can be restored to.
        chunks: chunks put out before, so that numbers continue; likewise `pts_us`, the chunks of
            each loop with media (`numbers`), and the `utterances` of each loop of text.
        alone: never run it in one pass with others: it is suspected of having ended a worker.
        origin: a session of this worker to fork from, whose blocks it shares; its `RequestDone`
            then holds the `durables`.
    """

    request: int
    session: str
    program: str
    seed: int
    prompt: str
    parameters: Mapping[str, float] = field(default_factory=dict)
    stop: tuple[str, ...] = ()
    durables: tuple[Durable, ...] = ()
    kept: tuple[KeptSnapshot, ...] = ()
    chunks: int = 0
    pts_us: int = 0
    numbers: Mapping[str, int] = field(default_factory=dict)
    utterances: Mapping[str, int] = field(default_factory=dict)
    alone: bool = False
    origin: ForkOrigin | None = None


@dataclass(frozen=True, slots=True)
class PushInputs:
    """Controls for the next step, in order. Each gets a receipt as an emission."""

    session: str
    inputs: tuple[ControlInput, ...]


@dataclass(frozen=True, slots=True)
class ReleaseKeys:
    """Release every held key: the client lost the focus or the connection."""

    session: str


@dataclass(frozen=True, slots=True)
class PlayheadMoved:
    """The viewer has seen every frame up to and including `chunk`.

    Attributes:
        loop: whose chunk that is; empty for the leading loop's.
        in_time: it counts once it can have been played, and not sooner; see `PlayoutLead.seen`.
        line: the line that the report came over; None: the viewer is in the server's process.
        waited_us: how long the first picture of the chunk had waited at the viewer; None: unknown.
    """

    session: str
    chunk: int
    loop: str = ""
    in_time: bool = False
    line: LineTiming | None = None
    waited_us: int | None = None


@dataclass(frozen=True, slots=True)
class SetWatched:
    """Whether a viewer watches; without one, generation stops at the next chunk."""

    session: str
    watched: bool


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop before the next unit; done when no unit of the session is running.

    The command's wire form between server and worker.
    """

    request: int
    session: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Continue after a pause. The command's wire form."""

    request: int
    session: str


@dataclass(frozen=True, slots=True)
class Advance:
    """While paused, put out `chunks` more chunks and pause again."""

    request: int
    session: str
    chunks: int


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Drop what is unfinished or unseen; continue from `seen`, the last chunk that was seen.

    The command's wire form between server and worker.

    Attributes:
        seen: None before the first chunk was seen.
        loop: the one to interrupt; None interrupts all of them.
        seen_of: the loop whose chunk was seen; empty for the leading one.
    """

    request: int
    session: str
    seen: int | None
    loop: str | None = None
    seen_of: str = ""


@dataclass(frozen=True, slots=True)
class ActNow:
    """Controls that act before what would still be unseen when their frame comes.

    Chunks in which an earlier control acts stay, and those before them.

    Attributes:
        inputs: as in `PushInputs`.
        seen: the last chunk that was seen; None before the first.
        seen_of: the loop of that chunk; empty for the leading one.
        ahead_us: media after that chunk that will have been seen by then.
    """

    request: int
    session: str
    inputs: tuple[ControlInput, ...]
    seen: int | None
    seen_of: str = ""
    ahead_us: int = 0


@dataclass(frozen=True, slots=True)
class Rewind:
    """Continue from an earlier chunk of the leading loop, the others from the same media time.

    Refused when one of the loops does not keep it any more. The command's wire form between server
    and worker.
    """

    request: int
    session: str
    chunk: int


@dataclass(frozen=True, slots=True)
class Reset:
    """Begin again under the prompt now in effect; a seed of None keeps the session's.

    The command's wire form between server and worker.
    """

    request: int
    session: str
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class TakeSnapshot:
    """Keep the state of the newest shown chunk under `name`.

    It is exact in the worker that took it, and its durable part outlives that worker.
    """

    request: int
    session: str
    name: str


@dataclass(frozen=True, slots=True)
class RestoreSnapshot:
    """Continue from a kept state."""

    request: int
    session: str
    name: str


@dataclass(frozen=True, slots=True)
class CloseSession:
    """End the loops and return all blocks; done when no unit of the session is running."""

    request: int
    session: str


OneWay = PushInputs | ReleaseKeys | PlayheadMoved | SetWatched
"""What an open session says without waiting for an answer."""

Request = (
    Pause | Resume | Advance | Interrupt | ActNow | Rewind | Reset | TakeSnapshot | RestoreSnapshot
)
"""What an open session asks for."""

GoBack = Interrupt | ActNow | Rewind | RestoreSnapshot
"""The requests that give up what came after the state that they return to."""
