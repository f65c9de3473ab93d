"""Which unit of a loop could run now: the kernel plans; the pacing holds back."""

import logging
from dataclasses import fields
from numbers import Real
from typing import Any, Generic

import numpy as np

from reverie.engine.emissions import FaultCode
from reverie.engine.errors import BadStepError
from reverie.engine.loop_context import LoopContext
from reverie.engine.scheduler import Candidate
from reverie.models.contract.errors import DeviceMemoryError
from reverie.models.contract.loop import BatchKey, Idle, S, WorkPlan
from reverie.models.contract.spec import LoopSpec
from reverie.models.services.device_errors import classify

log = logging.getLogger(__name__)

_KEY_TUPLES = ("shape", "adapters")
_FLAGS = ("takes_controls", "commits", "shows")


class Planner(Generic[S]):
    """Plans the units of one driver.

    Attributes:
        wake_us: until when pace or lead held back what could have run, when it was last asked.
    """

    def __init__(self, context: LoopContext[S]) -> None:
        self.wake_us: int | None = None
        self._context = context

    def ready(self, now_us: int) -> Candidate | None:
        """Return the unit that could run now, and remember it."""
        context = self._context
        context.planned = self.wake_us = None
        if context.ended or not context.gate.open(
            context.open_chunk.begun, behind=context.is_behind
        ):
            return None
        if context.lead is None and now_us < context.pace.due_us:
            self.wake_us = context.pace.due_us
            return None
        if context.gate.refresh and context.open_chunk.open and context.mailbox.has_news:
            context.roll_back()
        deadline_us = self._deadline_us(now_us)
        plan = self._plan()
        if (
            plan is not None
            and plan.commits
            and context.lead is not None
            and context.is_full(now_us)
        ):
            plan = self._plan_again(now_us, deadline_us)
            self.wake_us = context.lead.opens_us
        context.planned = plan
        if plan is None:
            return None
        again = plan.takes_controls and context.is_between_chunks
        running = context.open_chunk.begun and not again
        return Candidate(context.session, plan, deadline_us, running)

    def _deadline_us(self, now_us: int) -> int:
        context = self._context
        if context.lead is not None:
            return context.lead.deadline_us(now_us)
        return context.pace.deadline_us(now_us)

    def _plan(self) -> WorkPlan | None:
        context = self._context
        try:
            controls = context.seeing(context.mailbox.peek())
            answer = context.kernel.plan_step(context.states.now.state, controls)
            return checked_plan(answer, context.kernel.spec)
        except BadStepError as error:
            self._give_up(error.code, str(error))
        except Exception as error:
            told = classify(error, context.instance.device)
            log.exception("session %s: plan_step failed", context.session)
            if isinstance(told, DeviceMemoryError):
                self._give_up(FaultCode.OUT_OF_MEMORY, str(told))
            else:
                self._give_up(FaultCode.STEP_RAISED, f"{type(error).__name__}: {error}")
        return None

    def _give_up(self, code: FaultCode, message: str) -> None:
        # Planning is pure: asking again would give the same answer.
        self._context.strikes += 1
        self._context.fault(code, message)

    def _plan_again(self, now_us: int, deadline_us: int) -> WorkPlan | None:
        """At the full lead: plan again for newer controls, once a chunk and if there is time."""
        context, open_chunk = self._context, self._context.open_chunk
        # Long past the deadline the viewer is away, and there is time as well.
        has_time = abs(deadline_us - now_us) >= open_chunk.spent_us
        if not (open_chunk.open and context.mailbox.has_news and has_time) or open_chunk.refreshed:
            return None
        context.roll_back()
        context.open_chunk.refreshed = True
        plan = self._plan()
        return None if plan is None or plan.commits else plan


def checked_plan(answer: object, loop: LoopSpec) -> WorkPlan | None:
    """Return the plan that `plan_step` gave; None when there is nothing to do.

    Raises:
        BadStepError: it is neither a `WorkPlan` nor `Idle`, or a field of it is of no use.
    """
    if isinstance(answer, Idle):
        return None
    if not isinstance(answer, WorkPlan):
        what = type(answer).__name__
        raise _bad(f"plan_step returned {what} where a WorkPlan or Idle is due")
    _require_key(answer.batch_key, loop)
    if not isinstance(answer.kind, str):
        raise _bad(f"kind is no text: {answer.kind!r}")
    for name in _FLAGS:
        flag: Any = getattr(answer, name)
        if not isinstance(flag, (bool, int, np.bool_)):
            raise _bad(f"{name} is neither true nor false: {flag!r}")
    writes: Any = answer.writes
    if not isinstance(writes, int) or writes < 0:
        raise _bad(f"writes is no count of blocks: {writes!r}")
    streams: Any = answer.streams
    if not isinstance(streams, (tuple, list)) or not all(isinstance(s, str) for s in streams):
        raise _bad(f"streams is no tuple of names: {streams!r}")
    return answer


def _require_key(key: Any, loop: LoopSpec) -> None:
    """Refuse what cannot be compared with the keys of other sessions, or is not this loop's."""
    if not isinstance(key, BatchKey):
        raise _bad(f"batch_key is no BatchKey: {key!r}")
    for field in fields(key):
        value = getattr(key, field.name)
        if field.name in _KEY_TUPLES:
            fits = isinstance(value, tuple) and all(isinstance(part, (str, Real)) for part in value)
        else:
            fits = isinstance(value, str)
        if not fits:
            raise _bad(f"batch_key.{field.name} is of the wrong type: {value!r}")
    if key.loop != loop.name:
        raise _bad(f"batch_key names loop {key.loop!r}, and this is {loop.name!r}")


def _bad(message: str) -> BadStepError:
    return BadStepError(FaultCode.BAD_PLAN, message)
