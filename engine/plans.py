"""What a kernel planned, checked before the scheduler, which serves all sessions, looks at it."""

from dataclasses import fields
from numbers import Real
from typing import Any

import numpy as np

from reverie.engine.emissions import FaultCode
from reverie.engine.errors import BadStepError
from reverie.models.contract.loop import BatchKey, Idle, WorkPlan
from reverie.models.contract.spec import LoopSpec

_KEY_TUPLES = ("shape", "adapters")
_FLAGS = ("takes_controls", "commits", "shows")


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
