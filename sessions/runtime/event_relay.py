"""From what the pool says of a session to the events that everybody there gets, in order.

While a cut is asked for (interrupt, rewind, reset, restore), what comes is held back: only the
answer says which of the frames are old. Nothing old leaves afterwards.
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
from reverie.gpu_pool.wire.notifications import Notification, Recovered, SessionLost, WorkerLost
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

    def __call__(self, notice: Notification) -> None:
        """EventRelay a notice, or hold it back."""
        if self._held is not None:
            self._held.append(notice)
        else:
            self._event_relay(notice)

    def hold(self) -> None:
        """Hold back what comes from now on."""
        assert self._held is None, "cuts come one after the other"
        self._held = []

    def let_go(self, from_us: int = 0, loop: str | None = None) -> None:
        """Relay what was held, in order, but for what has been dropped.

        Args:
            from_us: the media time before which that was made.
            loop: the only one of which it was; None: of all.
        """
        held, self._held = self._held or [], None
        for notice in held:
            if not _is_dropped(notice, from_us, loop):
                self._event_relay(notice)

    def _event_relay(self, notice: Notification) -> None:
        if self._state.over:
            return
        match notice:
            case FramesOut():
                self._frames(notice)
            case SamplesOut():
                self._receipts.before_frames()
                self._outputs.sound(notice.stream).publish(notice)
            case TextOut():
                self._receipts.before_frames()
                self._outputs.text(notice.stream).publish(notice)
            case emissions.ControlApplied(control=control) if control == OPENING:
                self._opening.settle(notice, self._attached.driver)
            case emissions.ControlSuperseded(control=control) if control == OPENING:
                self._opening.settle(notice, self._attached.driver)
            case emissions.ControlApplied():
                self._receipts.applied(notice)
            case emissions.ControlSuperseded():
                self._receipts.superseded(notice)
            case emissions.ControlFailed():
                self._control_failed(notice)
            case StepFailed():
                self._step_failed(notice)
            case WorkerLost():  # how, the pool has logged
                self._state.workers_lost += 1
                self._state.recovering = True
                for text in self._outputs.texts:
                    text.cut()
                chunk = self._state.chunk
                self._attached.tell(SessionRecovering(reason="worker_lost", chunk=chunk))
            case Recovered():
                self._state.recovering = False
                self._state.artifacts.clear()  # which are left, only the new worker knows
                self._views.changed()  # the pool has told the new worker all that it must know
            case SessionLost(code=code, message=message):
                logger.warning("session %s was given up: %s", self._state.session, message)
                self._fail(code, public_errors.session_lost(code))
            case _:
                pass  # snapshots are the pool's own; nobody here asks for traces

    def _frames(self, out: FramesOut) -> None:
        self._receipts.before_frames()
        try:
            self._outputs.video(out.header.stream).publish(out)
        except UnsupportedPictureError as error:
            self._fail("bad_shape", str(error))

    def _control_failed(self, failed: emissions.ControlFailed) -> None:
        """Take a control back that could not be read, unless a newer one has come since."""
        item = self._receipts.waits(failed.control)
        self._receipts.superseded(emissions.ControlSuperseded(failed.session, failed.control, None))
        code = failed.code.value
        field = "prompt"
        if isinstance(item, ParameterInput):
            field = f"parameters.{item.name}"
            if self._state.parameters.get(item.name) == item.value:
                self._state.parameters[item.name] = float(failed.stands)
        elif isinstance(item, PromptInput) and self._state.prompt.whole == item.text:
            self._state.prompt = self._state.prompt.replaced(str(failed.stands))
        self._attached.tell(Error(code=code, message=public_errors.not_read(code), field=field))
        self._views.changed()

    def _step_failed(self, failed: StepFailed) -> None:
        self._state.steps_failed += 1
        code = failed.code.value
        if failed.code is not FaultCode.STEP_RAISED:  # the worker has logged that one, and where
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


def _is_dropped(notice: Notification, from_us: int, loop: str | None) -> bool:
    match notice:
        case FramesOut(FramesHeader(pts_us=pts_us, loop=made_by)):
            return pts_us < from_us and loop in (None, made_by)
        case SamplesOut(pts_us=pts_us, loop=made_by):
            return pts_us < from_us and loop in (None, made_by)
        case _:
            return False
