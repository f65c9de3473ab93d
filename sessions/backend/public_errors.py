"""What clients are told when a model, its worker or an encoder fails.

The text of their exceptions may hold anything (paths, keys, other clients' prompts), so it goes to
the server's log only. Clients get a stable code and a sentence from here.
"""

from typing import TypeVar

from reverie.engine.emissions import FaultCode
from reverie.gpu_pool.wire.errors import ModelUnavailableError, PoolError, RequestRefusedError

E = TypeVar("E", bound=Exception)

WORKER_LOST = "the model's worker was lost; the session is being recovered"
LOOP_GONE = "the session has ended"
NOT_SERVED = "the model is not available; the server's log says more"
NOT_DECODED = "the pushed media could not be decoded in time; the server's log says more"
NOT_ENCODED = "the pictures could not be encoded; the server's log says more"

_TOLD = {
    "open_failed": "the model could not start the session",
    "request_failed": "the model failed to carry out the command",
    "worker_lost": "the model's worker was lost, and the session could not be recovered",
    "gave_way": "a waiting session took the place, because your owner or address held more places "
    "(pool.give_way)",
    "weights_changed": "the model's weights changed while its worker was lost; "
    "the kept state was made by the earlier weights",
    "pool_closed": "the server is shutting down",
    "model_unavailable": NOT_SERVED,
}


def step_failed(code: str, message: str) -> str:
    """Say that a step failed, as in `StepFailed`; only for memory its own message is passed on."""
    if code == FaultCode.OUT_OF_MEMORY:
        return _ran_out(message)
    if code in (FaultCode.PROMPT_FAILED, FaultCode.PROMPT_TIMEOUT):
        return f"the session's first prompt could not be read ({code})"
    return f"a step of the model failed ({code})"


def _ran_out(message: str) -> str:
    """Pass on a `DeviceMemoryError`, whose text holds only sizes and words of this project."""
    return f"the model ran {message}"


def not_read(code: str) -> str:
    """Say that a prompt could not be read, as in `ControlFailed.code`."""
    return f"the prompt could not be read ({code}); the previous prompt stays in effect"


def loop_ended(loop: str) -> str:
    """Say that a loop other than the leading one was stopped."""
    return f"loop {loop} failed repeatedly and was stopped; other loops continue"


def session_lost(code: str) -> str:
    """Say that the pool gave up a session, as in `SessionLost.code`."""
    return _TOLD.get(code, f"the session could not continue ({code})")


def refused(error: RequestRefusedError) -> str:
    """Say why the loop refused; its own refusals (no such chunk) are passed on as they are."""
    if error.code == FaultCode.OUT_OF_MEMORY:
        return _ran_out(str(error))
    return _TOLD.get(error.code, str(error))


def not_opened(error: PoolError) -> tuple[str, str]:
    """Return the code and the sentence for a session that could not start."""
    if isinstance(error, RequestRefusedError):
        return error.code, refused(error)
    code = "model_unavailable" if isinstance(error, ModelUnavailableError) else "no_worker"
    return code, NOT_SERVED


def first_of(group: BaseExceptionGroup[E]) -> E:
    """Return the first error of a group, however deep it lies."""
    first = group.exceptions[0]
    return first_of(first) if isinstance(first, BaseExceptionGroup) else first
