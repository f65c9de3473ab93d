"""Time limits for an attachment without activity, and for a session without attachments."""

from collections.abc import Callable
from dataclasses import dataclass

from reverie.sessions.attachments.attachment import Attachment
from reverie.sessions.runtime.attachment_lifecycle import AttachmentLifecycle
from reverie.sessions.runtime.session_context import SessionContext
from reverie.sessions.state.limits import SessionLimits

SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class CloseReason:
    """Why an attachment is ended."""

    reason: str
    message: str


def close_reason(attachment: Attachment, now_us: int, limits: SessionLimits) -> CloseReason | None:
    """Return why an attachment must end; None when it need not."""
    if attachment.options.patient:
        return None
    outbox = attachment.outbox
    if len(outbox) and now_us - outbox.moved_us >= limits.stall_s * SECOND_US:
        return CloseReason(
            "slow_viewer", f"the client took no event for {limits.stall_s:g} s (stall_s)"
        )
    if now_us - attachment.active_us >= limits.idle_s * SECOND_US:
        return CloseReason(
            "idle",
            f"the client sent nothing and was shown nothing for {limits.idle_s:g} s (idle_s)",
        )
    return None


class SessionTimeouts:
    """Ends what is overdue in one session."""

    def __init__(
        self,
        context: SessionContext,
        attachment_lifecycle: AttachmentLifecycle,
        end: Callable[[str, str], None],
    ) -> None:
        """Watch nothing yet; `end` is called with a reason and a text to end the session."""
        self._attached = context.attached
        self._attachment_lifecycle = attachment_lifecycle
        self._limits = context.limits
        self._clock = context.clock
        self._end = end

    async def watch(self) -> None:
        """End what is overdue, until cancelled.

        Sleeps until something can be due: a limit that begins to count during the sleep is due no
        sooner than the shortest limit from then on.
        """
        while True:
            now_us = self._clock.now_us()
            for attachment in self._attached:
                found = close_reason(attachment, now_us, self._limits)
                if found is not None:
                    self._attachment_lifecycle.dismiss(attachment, found.reason, found.message)
            if self._left_s(now_us) <= 0:
                grace = f"{self._limits.grace_s:g} s (grace_s)"
                self._end("abandoned", f"no client was attached for {grace}")
                return
            await self._clock.sleep(self._next_look_s(now_us))

    def _left_s(self, now_us: int) -> float:
        unattended_us = self._attachment_lifecycle.unattended_us
        if unattended_us is None:
            return self._limits.grace_s
        return self._limits.grace_s - (now_us - unattended_us) / SECOND_US

    def _next_look_s(self, now_us: int) -> float:
        limits = self._limits
        due = [limits.grace_s, limits.stall_s, limits.idle_s, self._left_s(now_us)]
        for attachment in self._attached:
            if attachment.options.patient:
                continue
            idle_s = (now_us - attachment.active_us) / SECOND_US
            due.append(limits.idle_s - idle_s)
            if len(attachment.outbox):
                stalled_s = (now_us - attachment.outbox.moved_us) / SECOND_US
                due.append(limits.stall_s - stalled_s)
        return max(min(due), 0.001)
