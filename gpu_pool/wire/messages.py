"""The typed messages between the server and a worker, which may be another process.

Requests that need an answer carry a `request` number and get exactly one `Done` or `Refused`.
Everything is a frozen dataclass of plain values, so that it can be pickled; frames never travel in
a message but in the shared ring (`ring.py`), and `FramesInSlot` says where.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reverie.engine.emissions import Emission, FramesHeader
from reverie.engine.inputs import ControlInput
from reverie.gpu_pool.wire.ring import RingLayout
from reverie.gpu_pool.wire.start_request import ForkOrigin
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.loop import Durable
from reverie.models.contract.spec import ModelSpec

# --- server -> worker ---


@dataclass(frozen=True, slots=True)
class LoadModel:
    """The first message of all: what to load.

    Attributes:
        family: see `find_family`.
        ring_slots: frame slots to make in the shared memory.
        search_path: folders to import from, as in the server.
        prompt_limit_s: the longest that reading a prompt may take.
    """

    family: str
    options: LoadOptions
    max_batch: int
    ring_slots: int
    search_path: tuple[str, ...] = ()
    prompt_limit_s: float = 30.0


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
        origin: a session of this worker to fork from, whose blocks it shares; its `Done` then
            holds the `durables`.
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
        in_time: it counts once it can have been played, and not sooner; see `Lead.seen`.
    """

    session: str
    chunk: int
    loop: str = ""
    in_time: bool = False


@dataclass(frozen=True, slots=True)
class Watched:
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


@dataclass(frozen=True, slots=True)
class FreeSlot:
    """The server has copied a ring slot."""

    slot: int


@dataclass(frozen=True, slots=True)
class Ping:
    """Asks for nothing: a worker that does not take it hangs."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    """End every session and leave."""


OneWay = PushInputs | ReleaseKeys | PlayheadMoved | Watched
"""What an open session says without waiting for an answer."""

Request = Pause | Resume | Advance | Interrupt | Rewind | Reset | TakeSnapshot | RestoreSnapshot
"""What an open session asks for."""

GoBack = Interrupt | Rewind | RestoreSnapshot
"""The requests that give up what came after the state that they return to."""

ToWorker = LoadModel | OpenSession | OneWay | Request | CloseSession | FreeSlot | Ping | Shutdown

# --- worker -> server ---


@dataclass(frozen=True, slots=True)
class ModelLoaded:
    """The model is loaded and every branch of it has run once.

    Attributes:
        slots: sessions that fit at once.
        session_bytes: cache memory of one session.
        ring: where frames will lie in the shared memory.
    """

    spec: ModelSpec
    weights_version: str
    slots: int
    session_bytes: int
    ring: RingLayout


@dataclass(frozen=True, slots=True)
class LoadFailed:
    """The model could not be loaded; the worker ends.

    Attributes:
        code: `load_failed`, `out_of_memory` or `device_lost`.
    """

    message: str
    code: str = "load_failed"


@dataclass(frozen=True, slots=True)
class DeviceLost:
    """The device has failed, so that this process can do nothing more; the worker ends."""

    message: str


@dataclass(frozen=True, slots=True)
class Done:
    """A request is done.

    Attributes:
        chunk: the chunk that the state is now after, where that means something: the last one
            put out for `Pause` and `CloseSession`, the one gone back to for `Interrupt`, `Rewind`
            and `RestoreSnapshot`, the one kept for `TakeSnapshot`. -1 before the first.
        pts_us: media time at which the next chunk will begin.
        durables: for `TakeSnapshot`, and for a session that parted from another, what of the
            state outlives the worker.
        back_us: media time at which that state was put out.
        utterances: for each loop of text, the number that its next new utterance will have.
        stands: for each loop with media, the chunk that its state is after.
    """

    request: int
    session: str
    chunk: int = -1
    pts_us: int = 0
    durables: tuple[Durable, ...] = ()
    utterances: Mapping[str, int] = field(default_factory=dict)
    stands: Mapping[str, int] = field(default_factory=dict)
    back_us: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """A request changed nothing, for this reason."""

    request: int
    session: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class FramesInSlot:
    """Frames of one chunk wait in a ring slot.

    Attributes:
        shape: [F, H, W, 3].
    """

    header: FramesHeader
    slot: int
    shape: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Emitted:
    """Any other emission of a driver."""

    emission: Emission


FromWorker = ModelLoaded | LoadFailed | DeviceLost | Done | Refused | FramesInSlot | Emitted
