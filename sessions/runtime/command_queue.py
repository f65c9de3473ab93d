"""Where commands come in: each gets exactly one answer, whatever happens to it.

What needs no loop is done at once (a playhead, a key frame, the end); all else goes through the
queue, so that it acts in the order in which it was sent.
"""

from collections.abc import Callable

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
from reverie.sessions.state.playheads import SeenPosition


class CommandQueue:
    """Takes the commands of all attachments of one session."""

    def __init__(
        self,
        context: SessionContext,
        commanding: CommandHandlers,
        recorder: SessionRecorder,
        close: Callable[[str], None],
    ) -> None:
        """Take commands; `close` ends the session for a reason."""
        self._state = context.state
        self._commanding = commanding
        self._recorder = recorder
        self._attached = context.attached
        self._link = context.link
        self._outputs = context.outputs
        self._inputs = context.inputs
        self._pending_limit = context.limits.pending_commands
        self._inbox = PendingCommands(self._pending_limit)
        self._close = close
        self._current: CommandRequest | None = None  # taken from the queue and not yet answered

    def submit(self, order: CommandRequest) -> None:
        """Carry out a command now or soon. Never waits."""
        self._state.commands += 1
        self._attached.overheard(order.command)
        try:
            if self._state.over:
                raise CommandError(ErrorCode.CLOSED, f"the session is over: {self._state.reason}")
            if order.sender.ended is not None:
                raise CommandError(ErrorCode.CLOSED, f"ended: {order.sender.ended}")
            self._admit(order)
        except CommandError as error:
            _refuse(order, error)

    async def serve(self) -> None:
        """Work off the queue until cancelled."""
        while True:
            order = self._current = await self._inbox.take()
            error: CommandError | None = None
            try:
                await self._commanding.carry_out(order)
            except CommandError as refused:
                error = refused
            if self._current is order:
                self._current = None
                if error is None:
                    _accept(order)
                else:
                    _refuse(order, error)
            if self._inbox.take_owed():
                self._link.release_keys()

    def shut(self, reason: str) -> None:
        """Answer what waits: it will not be carried out any more."""
        waiting = self._inbox.take_all()
        if self._current is not None:
            waiting.insert(0, self._current)
            self._current = None
        for order in waiting:
            _refuse(order, CommandError(ErrorCode.CLOSED, f"the session is over: {reason}"))

    def _admit(self, order: CommandRequest) -> None:
        match order.command:
            case Playhead(chunk=chunk, pts_us=pts_us):
                self._playhead(order.sender, self._state.seen(chunk, pts_us))
            case RequestKeyFrame(stream=stream):
                self._outputs.video(stream).request_key_frame(order.sender)
                _accept(order)
            case _ if order.sender.role is not Role.DRIVER:
                raise CommandError(ErrorCode.READ_ONLY, "a viewer cannot change the session")
            case PushMedia() as command:
                self._inputs.submit(order, command)
            case RecordStart() | RecordStop() | MakeClip() as command:
                self._record(command)
                _accept(order)
            case Close():
                _accept(order)
                self._close("closed")
            case _:
                self._enqueue(order)

    def _record(self, command: RecordStart | RecordStop | MakeClip) -> None:
        match command:
            case RecordStart(inputs=inputs):
                self._recorder.start(inputs=inputs)
            case RecordStop():
                self._recorder.stop()
            case MakeClip(seconds=seconds):
                self._recorder.clip(seconds)

    def _enqueue(self, order: CommandRequest) -> None:
        if self._inbox.put(order):
            return
        if not self._inbox.owe_release(order):
            message = f"{self._pending_limit} commands wait already (pending_commands)"
            raise CommandError(ErrorCode.TOO_MANY, message, retry_after_s=1.0)
        _accept(order)

    def _playhead(self, sender: Attachment, seen: SeenPosition) -> None:
        newest = self._state.newest_of(seen.loop)
        if self._state.playheads.advance(sender.key, seen, newest):
            sender.note_active()
            self._link.seen(self._state.playheads.governing)


def _accept(order: CommandRequest) -> None:
    order.answer(RequestAccepted(command=order.command.id))


def _refuse(order: CommandRequest, error: CommandError) -> None:
    order.answer(
        Error(
            code=error.code,
            message=error.message,
            field=error.field,
            command=order.command.id,
            retry_after_s=error.retry_after_s,
        )
    )
