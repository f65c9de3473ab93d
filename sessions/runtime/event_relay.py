"""From the pool's notifications of a session to the events that its attachments get, in order.

During a cut (interrupt, rewind, reset, restore), notifications are held back, because only the
answer says which of the frames are old. No old frame leaves afterwards.
"""

import logging
from collections.abc import Callable

from reverie.engine import emissions
from reverie.engine.emissions import (
    FaultCode,
    FramesHeader,
    FramesOut,
    SamplesOut,
    StepFailed,
    TextOut,
)
from reverie.engine.inputs import OPENING, ParameterInput, PromptInput
from reverie.gpu_pool.wire.notifications import (
    Notification,
    SessionLost,
    SessionRecovered,
    WorkerLost,
)
from reverie.media import UnsupportedPictureError
from reverie.sessions.backend import public_errors
from reverie.sessions.protocol.events import Error, SessionRecovering
from reverie.sessions.runtime.session_context import SessionContext

logger = logging.getLogger(__name__)


class EventRelay:
    """The sink of one session's lease. Called on the event loop; never waits."""

    def __init__(
        self,
        context: SessionContext,
        fail: Callable[[str, str], None],
    ) -> None:
        """Relay nothing yet; `fail` ends the session with a reason and a message."""
        self._state = context.state
        self._receipts = context.receipts
        self._outputs = context.outputs
        self._attached = context.attached
        self._opening = context.opening
        self._leading = context.controls.loops[0].name
        self._views = context.views
        self._fail = fail
        self._held: list[Notification] | None = None

    def __call__(self, notification: Notification) -> None:
        """Relay a notification, or hold it back."""
        if self._held is not None:
            self._held.append(notification)
        else:
            self._relay(notification)

    def hold(self) -> None:
        """Hold back notifications from now on."""
        assert self._held is None, "cuts come one after the other"
        self._held = []

    def let_go(self, from_us: int = 0, loop: str | None = None) -> None:
        """Relay what was held, in order, except what a cut has dropped.

        Args:
            from_us: media before this time was dropped.
            loop: the only loop of which it was; None: of all.
        """
        held, self._held = self._held or [], None
        for notification in held:
            if not _is_dropped(notification, from_us, loop):
                self._relay(notification)

    def _relay(self, notification: Notification) -> None:
        if self._state.over:
            return
        match notification:
            case FramesOut():
                self._frames(notification)
            case SamplesOut():
                self._receipts.before_frames()
                self._outputs.sound(notification.stream).publish(notification)
            case TextOut():
                self._receipts.before_frames()
                self._outputs.text(notification.stream).publish(notification)
            case emissions.ControlApplied(control=control) if control == OPENING:
                self._opening.settle(notification, self._attached.driver)
            case emissions.ControlSuperseded(control=control) if control == OPENING:
                self._opening.settle(notification, self._attached.driver)
            case emissions.ControlApplied():
                self._receipts.applied(notification)
            case emissions.ControlSuperseded():
                self._receipts.superseded(notification)
            case emissions.ControlFailed():
                self._control_failed(notification)
            case StepFailed():
                self._step_failed(notification)
            case WorkerLost():  # the pool has logged how
                self._state.workers_lost += 1
                self._state.recovering = True
                for text in self._outputs.texts:
                    text.cut()
                chunk = self._state.chunk
                self._attached.tell(SessionRecovering(reason="worker_lost", chunk=chunk))
            case SessionRecovered():
                self._state.recovering = False
                self._state.artifacts.clear()  # only the new worker knows which are left
                self._views.changed()
            case SessionLost(code=code, message=message):
                logger.warning(
                    "session %s was given up by the pool: %s", self._state.session, message
                )
                self._fail(code, public_errors.session_lost(code))
            case emissions.LeadMoved(loop=loop):
                self._state.leads[loop] = notification
            case _:
                pass  # such as kept states, which are the pool's own

    def _frames(self, out: FramesOut) -> None:
        self._receipts.before_frames()
        try:
            self._outputs.video(out.header.stream).publish(out)
        except UnsupportedPictureError as error:
            self._fail("bad_shape", str(error))

    def _control_failed(self, failed: emissions.ControlFailed) -> None:
        """Take back a control that could not be read, unless a newer one has come since."""
        item = self._receipts.waits(failed.control)
        self._receipts.superseded(emissions.ControlSuperseded(failed.session, failed.control, None))
        code = failed.code.value
        field = "prompt"
        if isinstance(item, ParameterInput):
            field = f"parameters.{item.name}"
            if self._state.parameters.get(item.name) == item.value:
                self._state.parameters[item.name] = float(failed.in_effect)
        elif isinstance(item, PromptInput) and self._state.prompt.whole == item.text:
            self._state.prompt = self._state.prompt.replaced(str(failed.in_effect))
        self._attached.tell(Error(code=code, message=public_errors.not_read(code), field=field))
        self._views.changed()

    def _step_failed(self, failed: StepFailed) -> None:
        self._state.steps_failed += 1
        code = failed.code.value
        if (
            failed.code is not FaultCode.STEP_RAISED
        ):  # the worker has logged that one with its traceback
            logger.warning("session %s: %s: %s", self._state.session, code, failed.message)
        message = public_errors.step_failed(code, failed.message)
        loop = failed.loop or None
        self._attached.tell(Error(code=code, message=message, chunk=failed.chunk, loop=loop))
        ended = failed.fatal or failed.restarted
        for text in self._outputs.texts:
            if ended and text.stream.loop == failed.loop:
                text.cut()
        if failed.fatal and failed.loop in ("", self._leading):
            self._fail(code, message)
        elif failed.fatal:
            told = Error(
                code="loop_ended", message=public_errors.loop_ended(failed.loop), loop=loop
            )
            self._attached.tell(told)


def _is_dropped(notification: Notification, from_us: int, loop: str | None) -> bool:
    match notification:
        case FramesOut(FramesHeader(pts_us=pts_us, loop=made_by)):
            return pts_us < from_us and loop in (None, made_by)
        case SamplesOut(pts_us=pts_us, loop=made_by):
            return pts_us < from_us and loop in (None, made_by)
        case _:
            return False
