"""The typed messages between the server and a worker, which may be another process.

Everything is a frozen dataclass of plain values, so that it can be pickled; frames never travel in
a message but in the shared ring (`ring.py`), and `FramesInSlot` says where. What the server asks of
one session is in `session_messages.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reverie.engine.emissions import Emission, FramesHeader
from reverie.gpu_pool.wire.ring import RingLayout
from reverie.gpu_pool.wire.session_messages import CloseSession, OneWay, OpenSession, Request
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
class FreeSlot:
    """The server has copied a ring slot."""

    slot: int


@dataclass(frozen=True, slots=True)
class Ping:
    """Asks for nothing: a worker that does not take it hangs."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    """End every session and leave."""


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
class RequestDone:
    """A request is done.

    Attributes:
        chunk: the chunk that the state is now after, where that means something: the last one
            put out for `Pause` and `CloseSession`, the one gone back to for `Interrupt`, `ActNow`,
            `Rewind` and `RestoreSnapshot`, the one kept for `TakeSnapshot`. -1 before the first.
        pts_us: media time at which the next chunk will begin.
        durables: for `TakeSnapshot`, and for a session that parted from another, what of the
            state outlives the worker.
        back_us: media time at which that state was put out.
        utterances: for each loop of text, the number that its next new utterance will have.
        state_chunks: for each loop with media, the chunk that its state is after.
        took_back: whether `ActNow` has dropped anything that was put out.
    """

    request: int
    session: str
    chunk: int = -1
    pts_us: int = 0
    durables: tuple[Durable, ...] = ()
    utterances: Mapping[str, int] = field(default_factory=dict)
    state_chunks: Mapping[str, int] = field(default_factory=dict)
    back_us: int = 0
    took_back: bool = False


@dataclass(frozen=True, slots=True)
class RequestRefused:
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
class EmissionMessage:
    """Any other emission of a driver."""

    emission: Emission


FromWorker = (
    ModelLoaded
    | LoadFailed
    | DeviceLost
    | RequestDone
    | RequestRefused
    | FramesInSlot
    | EmissionMessage
)
