"""The attachments of one session: admitting, replacing, ending and removing them."""

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
from reverie.sessions.state.session_phases import SessionPhase, Trigger


class AttachmentLifecycle:
    """Keeps playheads, streams, keys and the phase in step with the attachments."""

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
        self.unattended_us: int | None = context.clock.now_us()  # since when no client is attached

    def admit(self, role: Role, options: AttachOptions, command_sink: CommandSink) -> Attachment:
        """Admit a client. A new driver replaces the one before, which is told so.

        Raises:
            SessionEndedError: the session has ended.
            TooManyError: the limit of attachments is reached.
        """
        if self._state.over:
            raise SessionEndedError(self._state.reason or "closed")
        if role is Role.VIEWER:
            self._require_room(options.accounts)
        elif self._attached.driver is not None:
            why = "another client drives the session now"
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

    def _require_room(self, newcomer: Accounts) -> None:
        """Make room for a viewer; one attachment is kept for the driver.

        Raises:
            TooManyError: the limit is reached, and no address has two viewers more than this one.
        """
        viewers = [each for each in self._attached if each.role is Role.VIEWER]
        if len(viewers) < self._limits.attachments - 1:
            return
        holders = [(each, each.options.accounts) for each in reversed(viewers)]
        held = held_by(accounts for _, accounts in holders)
        leaver = who_gives_way(holders, newcomer, held)
        if leaver is None:
            raise TooManyError("attachments", self._limits.attachments)
        text = "another viewer took the place, because your address has more viewers"
        self.dismiss(leaver, "too_many_attachments", f"{text} (attachments)")

    def dismiss(self, attachment: Attachment, reason: str, message: str) -> None:
        """End an attachment whose session continues: it is told why, and gets nothing more."""
        if attachment in self._attached:
            self._forget(attachment)
            attachment.outbox.drop_media()
            attachment.outbox.end(reason, Error(code=reason, message=message))

    def leave(self, attachment: Attachment) -> None:
        """Remove an attachment whose client has left; idempotent."""
        if attachment in self._attached:
            self._forget(attachment)
        attachment.outbox.abandon("detached")

    def listening_changed(self, attachment: Attachment) -> None:
        """Begin or stop showing the streams to an attachment, as its `listening` says.

        The first attachment is shown the beginning. A later one is shown the newest picture at
        once, so that all before it counts as seen.
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
        self._playheads_changed()

    def _forget(self, attachment: Attachment) -> None:
        self._attached.remove(attachment)
        self._hide_all(attachment)
        if attachment.role is Role.DRIVER:
            self._link.release_keys()
        if not len(self._attached):
            self.unattended_us = self._clock.now_us()
            if self._state.phase in (SessionPhase.ACTIVE, SessionPhase.PAUSED):
                self._state.move(Trigger.DETACH)
        self._playheads_changed()
        self._views.changed()

    def _hide_all(self, attachment: Attachment) -> None:
        for output in self._outputs:
            output.hide(attachment)
        self._state.playheads.leave(attachment.key)

    def _playheads_changed(self) -> None:
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
        if self._state.recovering:  # earlier attachments were told when the worker was lost
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
            message = f"more than {limits.events} events wait to be sent (outbox_events)"
            self.dismiss(attachment, "slow_viewer", message)

        def wants_key(stream: str) -> None:
            self._outputs.video(stream).request_key_frame(attachment)

        outbox = Outbox(self._state.session, self._clock.now_us, limits, overflowed, wants_key)
        attachment = Attachment(next(self._keys), role, options, outbox, command_sink)
        return attachment
