"""One connection of a client to a session: what it may do, what waits for it, how it ends.

A transport attaches, then does two things at once: it takes events until `AttachmentEndedError`,
and submits what the client sends. `detach` in its `finally` is all the cleaning up it owes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from reverie.gpu_pool.wire.shares import Accounts
from reverie.media import AudioCodec, Codec
from reverie.sessions.attachments.outbox import Outbox
from reverie.sessions.attachments.round_trip import RoundTrip
from reverie.sessions.protocol.commands import AnyCommand, Playhead
from reverie.sessions.protocol.errors import AttachmentEndedError
from reverie.sessions.protocol.events import AnyEvent, Error, RequestAccepted


class Role(StrEnum):
    """What an attachment may do."""

    DRIVER = "driver"
    VIEWER = "viewer"


@dataclass(frozen=True, slots=True)
class AttachOptions:
    """How a client attaches.

    Attributes:
        codec: how frames come.
        audio: how sound comes; None: it does not.
        listening: whether the client takes events already; see `Attachment.listen`.
        patient: a consumer inside this process: the session waits for it, and it is never idle.
        message_bytes: the largest message of the transport, told to the client; 0: no limit.
        commands_per_s: likewise.
        accounts: what it is counted under when there are too many attachments.
        in_time: a playhead counts only once a viewer who plays at the media's own speed can have
            seen it, because the client may know of a picture before it is shown.
    """

    codec: Codec = Codec.RGB24
    audio: AudioCodec | None = None
    listening: bool = True
    patient: bool = False
    message_bytes: int = 0
    commands_per_s: int = 0
    accounts: Accounts = ()
    in_time: bool = False


Answer = RequestAccepted | Error


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A command, its sender, and where its one answer goes."""

    sender: "Attachment"
    command: AnyCommand
    answer: Callable[[Answer], None]


class CommandSink(Protocol):
    """What an attachment needs of its session."""

    def submit(self, request: CommandRequest) -> None:
        """Carry out a command after earlier ones; answers it exactly once."""

    def listening_changed(self, attachment: "Attachment") -> None:
        """Begin or stop to show it the streams."""

    def line_changed(self, attachment: "Attachment") -> None:
        """Encode for what its line takes now."""

    def detach(self, attachment: "Attachment") -> None:
        """Remove an attachment; idempotent."""


class Attachment:
    """One driver or viewer of a session. Made by `ServerSession.attach`."""

    def __init__(
        self,
        key: int,
        role: Role,
        options: AttachOptions,
        outbox: Outbox,
        command_sink: CommandSink,
    ) -> None:
        self.key = key  # unique in its session
        self.role = role
        self.options = options
        self.outbox = outbox
        self.listening = options.listening
        self.bits_per_s: int | None = None  # bandwidth for each video; None: unknown
        self.held = False  # its line is behind, so pictures wait before they are encoded
        self.round_trip = RoundTrip()
        self.lost: float | None = None  # part of the packets lost lately; None: unknown
        self.active_us = outbox.now_us()  # when it last sent a command or was shown something
        self._command_sink = command_sink

    @property
    def ended(self) -> str | None:
        """Why it has ended; waiting events can still be taken."""
        return self.outbox.ended

    def note_active(self) -> None:
        """Note a sign of life of the client."""
        self.active_us = self.outbox.now_us()

    def note_round_trip(self, took_us: int) -> None:
        """Note how long a message to the client and its answer took."""
        self.round_trip.note(took_us, self.outbox.now_us())

    def note_lost(self, part: float) -> None:
        """Note which part of the packets did not arrive lately."""
        self.lost = part

    def submit(self, command: AnyCommand, *, quiet: bool = False) -> None:
        """Submit a command; its answer comes as an event. Never waits.

        Args:
            quiet: only a refusal comes as an event.
        """
        self._submit(command, self._put_refusal if quiet else self.outbox.put)

    async def has_room(self) -> None:
        """Wait until few events wait; a sender that calls it is slowed instead of ended."""
        await self.outbox.has_room()

    async def request(self, command: AnyCommand) -> Answer:
        """Submit a command and wait for its answer, which does not come as an event.

        Safe to cancel: the command may still be carried out.
        """
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def answer(event: Answer) -> None:
            if not answered.done():
                answered.set_result(event)

        self._submit(command, answer)
        return await answered

    async def take(self) -> AnyEvent:
        """Wait for the next event. Safe to cancel: then nothing is lost.

        Raises:
            AttachmentEndedError: nothing more comes; says why.
        """
        event = await self.outbox.take()
        if event.type in ("media.chunk", "text.delta"):
            self.note_active()
        return event

    async def __aiter__(self) -> AsyncIterator[AnyEvent]:
        """Yield events until nothing more comes; `ended` then says why."""
        try:
            while True:
                yield await self.take()
        except AttachmentEndedError:
            return

    def listen(self, listening: bool) -> None:
        """Say whether the client takes events; while not, it gets no frames."""
        if listening != self.listening:
            self.listening = listening
            self._command_sink.listening_changed(self)

    def limit_video(self, bits_per_s: int | None) -> None:
        """Say how many bits a second the line takes for each video; None: it is not known."""
        if bits_per_s != self.bits_per_s:
            self.bits_per_s = bits_per_s
            self._command_sink.line_changed(self)

    def hold_video(self, held: bool) -> None:
        """Say whether the line is behind; meanwhile late pictures give way to newer ones."""
        if held != self.held:
            self.held = held
            self._command_sink.line_changed(self)

    def detach(self) -> None:
        """Leave the session; idempotent. Never waits."""
        self._command_sink.detach(self)

    def _put_refusal(self, event: Answer) -> None:
        if isinstance(event, Error):
            self.outbox.put(event)

    def _submit(self, command: AnyCommand, answer: Callable[[Answer], None]) -> None:
        if not isinstance(command, Playhead):
            self.note_active()
        self._command_sink.submit(CommandRequest(self, command, answer))
