"""Which unit of a loop could run now: the kernel plans; gate, lead and pace hold back."""

import logging
from typing import Generic

from reverie.engine.candidate import Candidate
from reverie.engine.emissions import FaultCode
from reverie.engine.errors import BadStepError
from reverie.engine.parts import Parts
from reverie.engine.plans import checked_plan
from reverie.models.device_errors import told_apart
from reverie.models.errors import DeviceMemoryError
from reverie.models.loop import S, WorkPlan

log = logging.getLogger(__name__)


class Planner(Generic[S]):
    """Plans the units of one driver.

    Attributes:
        wake_us: until when pace or lead held back what could have run, when it was last asked.
    """

    def __init__(self, parts: Parts[S]) -> None:
        self.wake_us: int | None = None
        self._parts = parts

    def ready(self, now_us: int) -> Candidate | None:
        """Return the unit that could run now, and remember it."""
        parts = self._parts
        parts.planned = self.wake_us = None
        if parts.ended or not parts.gate.open(parts.making.begun, behind=parts.is_behind):
            return None
        if parts.lead is None and now_us < parts.pace.due_us:
            self.wake_us = parts.pace.due_us
            return None
        if parts.gate.refresh and parts.making.open and parts.mailbox.has_news:
            parts.roll_back()
        deadline_us = self._deadline_us(now_us)
        plan = self._plan()
        if plan is not None and plan.commits and parts.lead is not None and parts.is_full(now_us):
            plan = self._plan_anew(now_us, deadline_us)
            self.wake_us = parts.lead.opens_us
        parts.planned = plan
        if plan is None:
            return None
        anew = plan.takes_controls and parts.is_between_chunks
        running = parts.making.begun and not anew
        return Candidate(parts.session, plan, deadline_us, running)

    def _deadline_us(self, now_us: int) -> int:
        parts = self._parts
        if parts.lead is not None:
            return parts.lead.deadline_us(now_us)
        return parts.pace.deadline_us(now_us)

    def _plan(self) -> WorkPlan | None:
        parts = self._parts
        try:
            controls = parts.seeing(parts.mailbox.peek())
            answer = parts.kernel.plan_step(parts.states.now.state, controls)
            return checked_plan(answer, parts.kernel.spec)
        except BadStepError as error:
            self._give_up(error.code, str(error))
        except Exception as error:
            told = told_apart(error, parts.instance.device)
            log.exception("session %s: plan_step failed", parts.session)
            if isinstance(told, DeviceMemoryError):
                self._give_up(FaultCode.OUT_OF_MEMORY, str(told))
            else:
                self._give_up(FaultCode.STEP_RAISED, f"{type(error).__name__}: {error}")
        return None

    def _give_up(self, code: FaultCode, message: str) -> None:
        # Planning is pure: asking again would give the same answer.
        self._parts.strikes += 1
        self._parts.fault(code, message)

    def _plan_anew(self, now_us: int, deadline_us: int) -> WorkPlan | None:
        """At the full lead: take up controls that came, once a chunk and when there is time."""
        parts, making = self._parts, self._parts.making
        # Long past the deadline the viewer is away, and there is time as well.
        has_time = abs(deadline_us - now_us) >= making.spent_us
        if not (making.open and parts.mailbox.has_news and has_time) or making.refreshed:
            return None
        parts.roll_back()
        parts.making.refreshed = True
        plan = self._plan()
        return None if plan is None or plan.commits else plan
