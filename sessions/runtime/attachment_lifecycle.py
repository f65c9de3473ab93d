"""Who comes and goes: letting in, replacing, ending and forgetting attachments of one session."""

from itertools import count

from reverie.gpu_pool.wire.shares import Accounts, held_by, who_gives_way
from reverie.sessions.attachments.attachment import Attachment, AttachOptions, CommandSink, Role
from reverie.sessions.attachments.outbox import Outbox, OutboxLimits
from reverie.sessions.protocol.commands import PROTOCOL
from reverie.sessions.protocol.errors import SessionEndedError, TooManyError
from reverie.sessions.protocol.events import (
    Error,
    RequestQueued,
    SessionAttached,
    SessionRecovering,
)
from reverie.sessions.runtime.session_context import SessionContext
from reverie.sessions.state.playheads import NOTHING
from reverie.sessions.state.session_state import SessionPhase, Trigger


class AttachmentLifecycle:
    """Keeps everything that depends on who is there in step with who is there."""

    def __init__(self, context: SessionContext) -> None:
        self._state = context.state
        self._attached = context.attached
        self._outputs = context.outputs
        self._opening = context.opening
        self._link = context.link
        self._views = context.views
        self._limits = context.limits
        self._clock = context.clock
        self._keys = count()
        self.unattended_us: int | None = context.clock.now_us()  # since when nobody is there

    def admit(self, role: Role, options: AttachOptions, command_sink: CommandSink) -> Attachment:
        """Let somebody in. A new driver takes the place of the one before, who is told so.

        Raises:
            SessionEndedError: the session is over.
            TooManyError: as many are here as may be.
        """
        if self._state.over:
            raise SessionEndedError(self._state.reason or "closed")
        if role is Role.VIEWER:
            self._make_room(options.accounts)
        elif self._attached.driver is not None:
            why = "the session is driven from elsewhere now"
            self.dismiss(self._attached.driver, "replaced", why)
        attachment = self._new_attachment(role, options, command_sink)
        self._attached.add(attachment)
        self.unattended_us = None
        if self._state.phase is SessionPhase.DETACHED:
            self._state.move(Trigger.ATTACH)
            if self._state.paused:
                self._state.move(Trigger.PAUSE)
        self._greet(attachment)
        self._opening.tell(attachment)
        for words in self._outputs.texts:
            words.greet(attachment)
        self.listening_changed(attachment)
        self._views.changed()
        return attachment

    def _make_room(self, newcomer: Accounts) -> None:
        """Have room for a viewer, and keep that of the driver.

        Raises:
            TooManyError: as many watch as may, and no address has two viewers more than this one.
        """
        viewers = [each for each in self._attached if each.role is Role.VIEWER]
        if len(viewers) < self._limits.attachments - 1:
            return
        holders = [(each, each.options.accounts) for each in reversed(viewers)]
        held = held_by(accounts for _, accounts in holders)
        leaver = who_gives_way(holders, newcomer, held)
        if leaver is None:
            raise TooManyError("attachments", self._limits.attachments)
        text = "others want to watch, and your address has more viewers than they have"
        self.dismiss(leaver, "too_many_attachments", f"{text} (attachments)")

    def dismiss(self, attachment: Attachment, reason: str, message: str) -> None:
        """End an attachment whose session goes on: it is told why, and gets nothing more."""
        if attachment in self._attached:
            self._forget(attachment)
            attachment.outbox.drop_media()
            attachment.outbox.end(reason, Error(code=reason, message=message))

    def leave(self, attachment: Attachment) -> None:
        """Let somebody go who wants nothing more. Leaving twice is leaving once."""
        if attachment in self._attached:
            self._forget(attachment)
        attachment.outbox.abandon("detached")

    def listening_changed(self, attachment: Attachment) -> None:
        """Begin or stop to show the streams to an attachment, as its `listening` says.

        The first of all is shown the beginning. Whoever comes later is shown the newest picture
        at once, so all before it counts as seen.
        """
        if attachment not in self._attached:
            return
        if attachment.listening:
            shown = NOTHING if self._outputs.have_unshown else self._state.newest
            self._state.playheads.enter(
                attachment.key,
                attachment.role is Role.DRIVER,
                shown,
                in_time=attachment.options.in_time,
            )
            for output in self._outputs:
                output.show(attachment)
        else:
            self._hide_all(attachment)
            attachment.outbox.drop_media()
        self._eyes_changed()

    def _forget(self, attachment: Attachment) -> None:
        self._attached.remove(attachment)
        self._hide_all(attachment)
        if attachment.role is Role.DRIVER:
            self._link.release_keys()
        if not len(self._attached):
            self.unattended_us = self._clock.now_us()
            if self._state.phase in (SessionPhase.ACTIVE, SessionPhase.PAUSED):
                self._state.move(Trigger.DETACH)
        self._eyes_changed()
        self._views.changed()

    def _hide_all(self, attachment: Attachment) -> None:
        for output in self._outputs:
            output.hide(attachment)
        self._state.playheads.leave(attachment.key)

    def _eyes_changed(self) -> None:
        self._link.seen(self._state.playheads.governing)
        self._link.watched(self._attached.listening)

    def _greet(self, attachment: Attachment) -> None:
        attachment.outbox.put(
            SessionAttached(
                protocol=PROTOCOL,
                role=attachment.role.value,
                view=self._views.view(),
                limits=self._views.limits(attachment.options),
            )
        )
        if self._state.recovering:  # the others were told when the worker was lost
            recovering = SessionRecovering(reason="worker_lost", chunk=self._state.chunk)
            attachment.outbox.put(recovering)
        if self._state.queue_position is not None:
            attachment.outbox.put(RequestQueued(position=self._state.queue_position))

    def _new_attachment(
        self, role: Role, options: AttachOptions, command_sink: CommandSink
    ) -> Attachment:
        limits = OutboxLimits(
            frames=self._limits.outbox_frames,
            packets=self._limits.outbox_packets,
            bytes=self._limits.outbox_bytes,
            events=self._limits.outbox_events,
            endless=options.patient,
        )

        def overflowed() -> None:
            message = f"over {limits.events} events wait (outbox_events)"
            self.dismiss(attachment, "slow_viewer", message)

        def wants_key(stream: str) -> None:
            self._outputs.video(stream).request_key_frame(attachment)

        outbox = Outbox(self._state.session, self._clock.now_us, limits, overflowed, wants_key)
        attachment = Attachment(next(self._keys), role, options, outbox, command_sink)
        return attachment
