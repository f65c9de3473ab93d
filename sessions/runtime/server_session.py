"""The server's side of a session: its parts, its attachments, and how it ends.

    lease -> event relay -> output streams -> outboxes -> attachments -> transports
    worker channel <- command handlers <- command queue <- attachments <- transports

One TaskGroup runs it all; a child ends the session by raising. `_end` decides the reason in one
place, and the order of the last events: answers, receipts, ends of streams, end of the session.
"""

import asyncio
import logging

from reverie.gpu_pool.wire.errors import PoolError, PoolFullError
from reverie.gpu_pool.wire.session_messages import Pause
from reverie.gpu_pool.wire.shares import Accounts
from reverie.gpu_pool.wire.start_request import ForkOrigin
from reverie.media import Clock, InputStuckError, MediaError, VideoFanout
from reverie.media.audio.espeak import Speech
from reverie.models.contract.spec import ModelSpec
from reverie.sessions.attachments.attachment import Attachment, AttachOptions, CommandRequest, Role
from reverie.sessions.backend import public_errors
from reverie.sessions.backend.public_errors import first_of
from reverie.sessions.backend.session_backend import SessionBackend
from reverie.sessions.protocol.errors import CommandError, SessionEndedError
from reverie.sessions.protocol.events import Error, SessionClosed
from reverie.sessions.protocol.session_stats import SessionStats
from reverie.sessions.protocol.session_view import SessionView
from reverie.sessions.recording.recording import Keys
from reverie.sessions.recording.recordings import Recordings
from reverie.sessions.runtime.attachment_lifecycle import AttachmentLifecycle
from reverie.sessions.runtime.command_handlers import CommandHandlers
from reverie.sessions.runtime.command_queue import CommandQueue
from reverie.sessions.runtime.event_relay import EventRelay
from reverie.sessions.runtime.interruption import Interruption
from reverie.sessions.runtime.session_context import SessionContext
from reverie.sessions.runtime.session_place import SessionPlace
from reverie.sessions.runtime.session_recorder import SessionRecorder
from reverie.sessions.runtime.timeouts import SessionTimeouts
from reverie.sessions.state.limits import SessionLimits
from reverie.sessions.state.session_phases import Trigger
from reverie.sessions.state.session_state import SessionState
from reverie.sessions.streams.barge_in import BargeIn
from reverie.sessions.streams.output_streams import OpenFanout
from reverie.sessions.streams.speech_stream import SpeechStream

logger = logging.getLogger(__name__)


class ServerSession:
    """One session. `run` runs it; everything else may be called meanwhile."""

    def __init__(
        self,
        state: SessionState,
        spec: ModelSpec,
        backend: SessionBackend,
        limits: SessionLimits,
        clock: Clock,
        open_fanout: OpenFanout = VideoFanout,
        recordings: Recordings | None = None,
        keys: Keys | None = None,
        speech: Speech | None = None,
        origin: ForkOrigin | None = None,
        accounts: Accounts = (),
    ) -> None:
        """Put the parts together; nothing starts before `run`.

        Args:
            origin: where it forks from another session; None: it is new.
            accounts: what its place is counted under: its owner, then the address if that counts.
        """
        self.state = state
        self.message = ""  # for people: why it has ended
        self._context = context = SessionContext.of(state, spec, limits, clock, open_fanout)
        self.scope = context.scope
        self._over = asyncio.Event()
        self._gone = asyncio.Event()  # its place was given back
        event_relay = EventRelay(context, self.fail)
        self._place = SessionPlace(context, backend, event_relay, limits.close_s, origin, accounts)
        self.inputs = context.inputs
        self._voice: SpeechStream | None = None
        if speech is not None:
            self._voice = context.outputs.add_voice(speech, self.scope, self._not_spoken)
        self.recorder = SessionRecorder(context, recordings, keys, "".join(accounts[1:]))
        interruption = Interruption(context, event_relay)
        self._barge_in = BargeIn(state, context.controls, context.attached, interruption.interrupt)
        context.inputs.listen(self._barge_in.heard)
        handlers = CommandHandlers(context, interruption)
        self._commands = CommandQueue(context, handlers, self.recorder, self.end)
        self._attachment_lifecycle = AttachmentLifecycle(context)
        self._lifetime = SessionTimeouts(context, self._attachment_lifecycle, self.end)
        self.scope.on_cancel(lambda _: self._over.set())

    # --- its state ---

    @property
    def id(self) -> str:
        """The session's id."""
        return self.state.session

    @property
    def has_sound(self) -> bool:
        """Whether it has an audio stream."""
        return bool(self._context.outputs.sounds)

    @property
    def view(self) -> SessionView:
        """The session as it is now."""
        return self._context.views.view()

    @property
    def stats(self) -> SessionStats:
        """How it runs now."""
        return self._context.views.stats()

    @property
    def parting(self) -> ForkOrigin:
        """Where another session can fork from this one: after what was seen of it last."""
        seen = self.state.playheads.governing
        return ForkOrigin(self.id, seen.chunk if seen.chunk >= 0 else None, seen_of=seen.loop)

    # --- running and ending ---

    async def run(self) -> None:
        """Run until `end`; then give everything back. Cancelling it ends the session."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._context.outputs.start(tasks)
                if self._voice is not None:
                    tasks.create_task(self._voice.speak(), name=f"{self.id} voice")
                self._context.inputs.start(tasks)
                tasks.create_task(self._barge_in.run(), name=f"{self.id} barge-in")
                tasks.create_task(self._place.take(), name=f"{self.id} place")
                tasks.create_task(self._commands.serve(), name=f"{self.id} commands")
                tasks.create_task(self._context.views.tell_changes(), name=f"{self.id} views")
                tasks.create_task(self._lifetime.watch(), name=f"{self.id} lifetime")
                await self._over.wait()
                raise SessionEndedError(self.scope.reason or "")
        except* SessionEndedError:
            pass
        except* PoolFullError as group:
            self._place.refused = refused = first_of(group)
            self.fail("pool_full", str(refused))
        except* PoolError as group:
            error = first_of(group)
            logger.warning("session %s could not start: %s", self.id, error)
            self.fail(*public_errors.not_opened(error))
        except* InputStuckError as group:
            logger.error("session %s: %s", self.id, first_of(group))
            self.fail("decode_failed", public_errors.NOT_DECODED)
        except* MediaError as group:
            logger.error("session %s: encoding failed: %s", self.id, first_of(group))
            self.fail("encode_failed", public_errors.NOT_ENCODED)
        except* Exception:
            logger.exception("session %s failed", self.id)
            self.fail("internal_error", "the server failed; its log says more")
        finally:
            self.end("shutdown")
            await self._place.give_back()
            self._gone.set()

    async def placed(self) -> None:
        """Return once it has its place, waits for one, or has ended.

        Raises:
            PoolFullError: there is no place, and the wait queue is full.
        """
        await self._place.settled()

    def fail(self, reason: str, message: str = "") -> None:
        """End it because it cannot continue."""
        self._end(Trigger.FAIL, reason, message)

    def end(self, reason: str, message: str = "") -> None:
        """End it for all attachments; idempotent, the first reason is kept."""
        self._end(Trigger.CLOSE, reason, message)

    async def ended(self) -> None:
        """Return once it has ended; its place may be given back a little later."""
        await self._over.wait()

    async def gone(self) -> None:
        """Return once it has ended and its place was given back."""
        await self._gone.wait()

    async def drain(self, limit_s: float, reason: str = "shutdown") -> None:
        """End it after the chunk that is being made, or after `limit_s` at the latest."""
        try:
            async with asyncio.timeout(limit_s):
                if self._context.link.is_connected:
                    await self._context.link.ask(Pause(0, self.state.session))
                await self._context.outputs.drain()
        except (TimeoutError, CommandError):
            logger.info("session %s did not pause within %g s", self.id, limit_s)
        self.end(reason)

    # --- attachments ---

    def attach(self, role: Role, options: AttachOptions) -> Attachment:
        """Attach a client. A new driver replaces the one before, which is told so.

        Raises:
            SessionEndedError: it has ended.
            TooManyError: the limit of attachments is reached.
        """
        attachment = self._attachment_lifecycle.admit(role, options, self)
        self.recorder.watched_in(options.codec)
        return attachment

    def submit(self, request: CommandRequest) -> None:
        """Carry out a command of an attachment; see `CommandQueue`."""
        self._commands.submit(request)

    def listening_changed(self, attachment: Attachment) -> None:
        """Begin or stop showing the streams to an attachment."""
        self._attachment_lifecycle.listening_changed(attachment)

    def line_changed(self, attachment: Attachment) -> None:
        """Encode each video stream for what an attachment's line takes now."""
        self._context.outputs.line_changed(attachment)

    def show_again(self, attachment: Attachment) -> None:
        """Send an attachment the newest pictures again, because they were lost on the way."""
        self._context.outputs.show_again(attachment)

    def detach(self, attachment: Attachment) -> None:
        """Remove an attachment; idempotent. A driver's held keys are released."""
        self._attachment_lifecycle.leave(attachment)

    # --- inside ---

    def _not_spoken(self, message: str) -> None:
        self._context.attached.tell(Error(code="not_spoken", message=message))

    def _end(self, trigger: Trigger, reason: str, message: str) -> None:
        if self.state.over:
            return
        self.state.move(trigger)
        self.state.reason, self.message = reason, message
        self._commands.shut(reason)
        self._context.inputs.shut(reason)
        self._context.receipts.drop_all()
        self.recorder.end()
        self.scope.cancel(reason)
        for attachment in self._context.attached:
            attachment.outbox.end(reason, SessionClosed(reason=reason, message=message))
        self._place.settle()
        logger.info("session %s has ended: %s %s", self.id, reason, message)
