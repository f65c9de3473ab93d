"""What a client shows of a session, and telling the attachments when it has changed."""

import asyncio

from reverie.media import Clock
from reverie.sessions.attachments.attached_clients import AttachedClients
from reverie.sessions.attachments.attachment import Attachment, AttachOptions
from reverie.sessions.protocol.events import SessionUpdated
from reverie.sessions.protocol.session_stats import AttachmentStats, SessionStats
from reverie.sessions.protocol.session_view import LeadView, LimitsView, SessionView
from reverie.sessions.recording.options import NOT_ENABLED
from reverie.sessions.state.limits import SessionLimits
from reverie.sessions.state.program_controls import ProgramControls
from reverie.sessions.state.session_state import SessionState


class SessionViews:
    """Makes views, and sends changed ones: only the newest, at a bounded rate."""

    def __init__(
        self,
        state: SessionState,
        controls: ProgramControls,
        attached: AttachedClients,
        limits: SessionLimits,
        clock: Clock,
    ) -> None:
        self._state = state
        self._controls = controls
        self._attached = attached
        self._limits = limits
        self._clock = clock
        self._changed = asyncio.Event()
        self.recording = NOT_ENABLED  # how the session can be recorded

    def view(self) -> SessionView:
        """Return the session as it is now."""
        state = self._state
        return SessionView(
            state=state.phase.value,
            model=state.model,
            program=state.program,
            prompt=state.prompt.whole,
            seed=state.seed,
            controls=self._controls.control_views(),
            parameters=self._controls.parameter_views(state.parameters),
            inputs=self._controls.input_views(),
            streams=self._controls.stream_views(),
            takes_prompt=self._controls.takes_prompt,
            takes_turns=self._controls.takes_turns,
            example_prompts=self._controls.example_prompts,
            example_turns=self._controls.example_turns,
            viewers=len(self._attached),
            lead=self._lead(),
            recording=state.recording,
            speed=self._controls.speed_view(),
        )

    def stats(self) -> SessionStats:
        """Return how the session runs now."""
        moved = self._state.lead
        return SessionStats(
            lead=self._lead(),
            delay_ms=moved.delay_us / 1000 if moved is not None else None,
            chunk=self._state.chunk,
            newest_us=self._state.newest_us,
            attachments=tuple(self._stats_of(each) for each in self._attached),
        )

    def _stats_of(self, attachment: Attachment) -> AttachmentStats:
        seen, line = self._state.playheads.of(attachment.key), attachment.round_trip.line
        waited_us = seen.waited_us
        return AttachmentStats(
            role=attachment.role.value,
            codec=attachment.options.codec.value,
            round_trip_ms=line.round_trip_us / 1000 if line is not None else None,
            jitter_ms=line.jitter_us / 1000 if line is not None else None,
            waited_ms=waited_us / 1000 if waited_us is not None else None,
            unseen_ms=max(0, self._state.newest_us - seen.pts_us) / 1000,
            bits_per_s=attachment.bits_per_s,
            lost=attachment.lost,
            waiting=len(attachment.outbox),
            skipped=attachment.outbox.skipped,
        )

    def _lead(self) -> LeadView:
        declared, moved = self._controls.lead, self._state.lead
        return LeadView(
            least_chunks=declared.least_chunks,
            most_ms=declared.most_ms,
            allowed_ms=moved.allowed_us / 1000 if moved is not None else 0.0,
            unseen_ms=moved.unseen_us / 1000 if moved is not None else 0.0,
        )

    def limits(self, options: AttachOptions) -> LimitsView:
        """Return the limits that an attachment can reach."""
        return LimitsView(
            message_bytes=options.message_bytes,
            commands_per_s=options.commands_per_s,
            prompt_chars=self._limits.prompt_chars,
            recording=self.recording.enabled,
            clip_s=self.recording.clip_s if self.recording.enabled else 0.0,
        )

    def changed(self) -> None:
        """Have the attachments told soon."""
        self._changed.set()

    async def tell_changes(self) -> None:
        """Send changes until cancelled; those closer together than the rate allows as one."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            self._attached.tell(SessionUpdated(view=self.view()))
            await self._clock.sleep(1 / self._limits.views_per_s)
