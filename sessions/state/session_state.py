"""What a session is: plain data. Its phases are in `session_phases.py`."""

import secrets
from collections import deque
from dataclasses import dataclass, field
from typing import NewType

from reverie.engine.emissions import LeadMoved
from reverie.models.contract.controls import Merge
from reverie.models.contract.spec import StreamKind
from reverie.sessions.state.playheads import Playheads, SeenPosition
from reverie.sessions.state.prompt_memory import PromptMemory
from reverie.sessions.state.session_phases import OVER, SessionPhase, Trigger, next_phase

SessionId = NewType("SessionId", str)

ID_BYTES = 16
"""Long enough that ids cannot be guessed, though an id alone opens nothing."""


def new_session_id() -> SessionId:
    """Return an id for a new session."""
    return SessionId(secrets.token_hex(ID_BYTES))


SPANS = 64
"""Chunks whose times are kept, to tell which loop's chunk a viewer reports."""


@dataclass(slots=True)
class StreamState:
    """An output stream so far.

    Attributes:
        loop: the loop that feeds it; empty for one of the server's own.
        chunk: the newest one put out; -1 before the first, and of text.
        newest_us: media time of the newest frame; -1 before the first.
        spans: the newest chunks, and between which media times each was put out.
        reason: why it ended; None before that.
    """

    name: str
    kind: StreamKind
    rate_hz: float = 0.0
    loop: str = ""
    chunk: int = -1
    frames: int = 0
    newest_us: int = -1
    spans: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=SPANS))
    reason: str | None = None

    @property
    def is_media(self) -> bool:
        """Whether a loop of the program feeds it with pictures or sound."""
        return bool(self.loop) and self.kind is not StreamKind.TEXT

    def put_out(self, chunk: int, from_us: int, to_us: int) -> None:
        """Note output of a chunk."""
        self.chunk = max(self.chunk, chunk)
        self.spans.append((chunk, from_us, to_us))

    def has(self, chunk: int, pts_us: int) -> bool:
        """Tell whether a chunk of it holds a media time."""
        return any(one == chunk and start <= pts_us < end for one, start, end in self.spans)


@dataclass(slots=True)
class InputState:
    """An input stream so far.

    Attributes:
        pieces: pictures or pieces of sound that were handed to the loop.
        dropped: pushes that gave way to newer ones.
        refused: pushes that could not be read or had no room.
        newest_us: time of the newest piece, on the client's clock; -1 before the first.
    """

    name: str
    kind: StreamKind
    merge: Merge
    pieces: int = 0
    dropped: int = 0
    refused: int = 0
    newest_us: int = -1


@dataclass(slots=True)
class SessionState:
    """The data of a session. Other packages may read it; only this package writes.

    Attributes:
        parameters: the value of every parameter.
        stop: texts that end an answer.
        streams: the outputs, by name.
        inputs: the input streams, by name.
        playheads: what each attachment has seen.
        leads: of each loop whose viewer is on a line, how far it is ahead.
        artifacts: names of the snapshots that the worker keeps, and the chunk of each.
        recording: the id of the running recording.
        paused: whether it is paused, also while no client is attached.
        recovering: whether its worker was lost and no other has it yet.
        reason: why it ended.
    """

    session: SessionId
    owner: str
    model: str
    program: str
    seed: int
    prompt: PromptMemory
    parameters: dict[str, float] = field(default_factory=dict)
    stop: tuple[str, ...] = ()
    streams: dict[str, StreamState] = field(default_factory=dict)
    inputs: dict[str, InputState] = field(default_factory=dict)
    playheads: Playheads = field(default_factory=Playheads)
    leads: dict[str, LeadMoved] = field(default_factory=dict)
    artifacts: dict[str, int] = field(default_factory=dict)
    recording: str | None = None
    phase: SessionPhase = SessionPhase.CREATED
    paused: bool = False
    recovering: bool = False
    reason: str | None = None
    queue_position: int | None = None
    commands: int = 0
    steps_failed: int = 0
    workers_lost: int = 0

    def move(self, trigger: Trigger) -> bool:
        """Apply a trigger; return whether the phase has changed.

        Raises:
            IllegalTriggerError: there is no such edge.
        """
        before, self.phase = self.phase, next_phase(self.phase, trigger)
        return self.phase is not before

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.phase in OVER

    @property
    def chunk(self) -> int:
        """The newest chunk of the first loop with media; -1 before the first."""
        media = [stream for stream in self.streams.values() if stream.is_media]
        return self.newest_of(media[0].loop) if media else -1

    def newest_of(self, loop: str) -> int:
        """Return the newest chunk that a loop has put out; -1 before the first."""
        streams = [stream for stream in self.streams.values() if stream.loop == loop]
        return max((stream.chunk for stream in streams), default=-1)

    @property
    def reported(self) -> tuple[str, ...]:
        """The loops whose chunks viewers report: those with pictures, else those with sound."""
        media = [stream for stream in self.streams.values() if stream.is_media]
        seen = [stream for stream in media if stream.kind is StreamKind.VIDEO]
        return tuple(dict.fromkeys(stream.loop for stream in seen or media))

    @property
    def lead(self) -> LeadMoved | None:
        """How far the session is ahead of a viewer on a line; None where none is."""
        if self.playheads.governing.line is None:
            return None
        return next((self.leads[loop] for loop in self.reported if loop in self.leads), None)

    @property
    def newest(self) -> SeenPosition:
        """All that was put out, as a viewer who has seen it would report it."""
        loop = next(iter(self.reported), "")
        return SeenPosition(self.newest_of(loop), self.newest_us, loop)

    def seen(self, chunk: int, pts_us: int) -> SeenPosition:
        """Return the position that a viewer reports without naming a loop."""
        loops = self.reported
        holding = [
            stream.loop
            for stream in self.streams.values()
            if stream.loop in loops and stream.has(chunk, pts_us)
        ]
        loop = next(iter((*holding, *loops)), "")
        return SeenPosition(chunk, pts_us, loop)

    @property
    def newest_us(self) -> int:
        """Media time of the newest frame of any stream; -1 before the first."""
        return max((stream.newest_us for stream in self.streams.values()), default=-1)
