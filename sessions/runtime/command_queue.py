"""Where commands come in: each gets exactly one answer, whatever happens to it.

Commands that need no loop are carried out at once (playhead, key frame, recording, close). All
others go through the queue, so that they act in the order in which they were sent.
"""

from collections.abc import Callable
from dataclasses import replace

from reverie.sessions.attachments.attachment import Attachment, CommandRequest, Role
from reverie.sessions.protocol.commands import (
    Close,
    MakeClip,
    Playhead,
    PushMedia,
    RecordStart,
    RecordStop,
    RequestKeyFrame,
)
from reverie.sessions.protocol.errors import CommandError, ErrorCode
from reverie.sessions.protocol.events import Error, RequestAccepted
from reverie.sessions.runtime.command_handlers import CommandHandlers
from reverie.sessions.runtime.pending_commands import PendingCommands
from reverie.sessions.runtime.session_context import SessionContext
from reverie.sessions.runtime.session_recorder import SessionRecorder


class CommandQueue:
    """Takes the commands of all attachments of one session."""

    def __init__(
        self,
        context: SessionContext,
        handlers: CommandHandlers,
        recorder: SessionRecorder,
        close: Callable[[str], None],
    ) -> None:
        """Take commands; `close` ends the session for a reason."""
        self._state = context.state
        self._handlers = handlers
        self._recorder = recorder
        self._attached = context.attached
        self._link = context.link
        self._outputs = context.outputs
        self._inputs = context.inputs
        self._pending_limit = context.limits.pending_commands
        self._pending = PendingCommands(self._pending_limit)
        self._close = close
        self._current: CommandRequest | None = None  # taken from the queue and not yet answered

    def submit(self, request: CommandRequest) -> None:
        """Carry out a command now or soon. Never waits."""
        self._state.commands += 1
        self._attached.overheard(request.command)
        try:
            if self._state.over:
                raise CommandError(ErrorCode.CLOSED, f"the session has ended: {self._state.reason}")
            if request.sender.ended is not None:
                raise CommandError(
                    ErrorCode.CLOSED, f"the attachment has ended: {request.sender.ended}"
                )
            self._admit(request)
        except CommandError as error:
            _refuse(request, error)

    async def serve(self) -> None:
        """Carry out queued commands until cancelled."""
        while True:
            request = self._current = await self._pending.take()
            error: CommandError | None = None
            try:
                await self._handlers.carry_out(request)
            except CommandError as refused:
                error = refused
            if self._current is request:
                self._current = None
                if error is None:
                    _accept(request)
                else:
                    _refuse(request, error)
            if self._pending.take_owed():
                self._link.release_keys()

    def shut(self, reason: str) -> None:
        """Refuse the waiting commands: they will not be carried out."""
        waiting = self._pending.take_all()
        if self._current is not None:
            waiting.insert(0, self._current)
            self._current = None
        for request in waiting:
            _refuse(request, CommandError(ErrorCode.CLOSED, f"the session has ended: {reason}"))

    def _admit(self, request: CommandRequest) -> None:
        match request.command:
            case Playhead() as command:
                self._playhead(request.sender, command)
            case RequestKeyFrame(stream=stream):
                self._outputs.video(stream).request_key_frame(request.sender)
                _accept(request)
            case _ if request.sender.role is not Role.DRIVER:
                raise CommandError(ErrorCode.READ_ONLY, "a viewer cannot change the session")
            case PushMedia() as command:
                self._inputs.submit(request, command)
            case RecordStart() | RecordStop() | MakeClip() as command:
                self._record(command)
                _accept(request)
            case Close():
                _accept(request)
                self._close("closed")
            case _:
                self._enqueue(request)

    def _record(self, command: RecordStart | RecordStop | MakeClip) -> None:
        match command:
            case RecordStart(inputs=inputs):
                self._recorder.start(inputs=inputs)
            case RecordStop():
                self._recorder.stop()
            case MakeClip(seconds=seconds):
                self._recorder.clip(seconds)

    def _enqueue(self, request: CommandRequest) -> None:
        if self._pending.put(request):
            return
        if not self._pending.owe_release(request):
            message = f"{self._pending_limit} commands wait already (pending_commands)"
            raise CommandError(ErrorCode.TOO_MANY, message, retry_after_s=1.0)
        _accept(request)

    def _playhead(self, sender: Attachment, command: Playhead) -> None:
        told = self._state.seen(command.chunk, command.pts_us)
        seen = replace(told, line=sender.round_trip.line, waited_us=command.waited_us)
        newest = self._state.newest_of(seen.loop)
        if self._state.playheads.advance(sender.key, seen, newest):
            sender.note_active()
            self._link.seen(self._state.playheads.governing)


def _accept(request: CommandRequest) -> None:
    request.answer(RequestAccepted(command=request.command.id))


def _refuse(request: CommandRequest, error: CommandError) -> None:
    request.answer(
        Error(
            code=error.code,
            message=error.message,
            field=error.field,
            command=request.command.id,
            retry_after_s=error.retry_after_s,
        )
    )
