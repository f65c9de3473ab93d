"""What clients are told when a model, its worker or an encoder fails.

The text of their exceptions may hold anything (paths, keys, other people's words), so it goes to
the server's log alone. Clients get a stable code and a sentence from here.
"""

from reverie.engine.emissions import FaultCode
from reverie.gpu_pool.wire.errors import ModelUnavailableError, PoolError, RequestRefusedError

WORKER_LOST = "the worker of the model was lost meanwhile; the world is being brought back"
LOOP_GONE = "the world has ended meanwhile"
NOT_SERVED = "the model is not served now; the server's log says more"
NOT_DECODED = "what was pushed could not be decoded in time; the server's log says more"
NOT_ENCODED = "the pictures could not be encoded; the server's log says more"

_TOLD = {
    "open_failed": "the model could not begin this world",
    "request_failed": "the model could not do this",
    "worker_lost": "the worker of the model was lost, and the world with it",
    "gave_way": "others wait for a place, and your owner or address held more than they do "
    "(pool.give_way)",
    "weights_changed": "the weights of the model were changed while its worker was lost; "
    "what was kept was made by those before",
    "pool_closed": "the server is leaving",
    "model_unavailable": NOT_SERVED,
}


def step_failed(code: str, message: str) -> str:
    """Say that a step failed, as `StepFailed` has it; only of memory its own words are told."""
    if code == FaultCode.OUT_OF_MEMORY:
        return _ran_out(message)
    if code in (FaultCode.PROMPT_FAILED, FaultCode.PROMPT_TIMEOUT):
        return f"the prompt that this world was to begin with could not be read ({code})"
    return f"a step of the model failed ({code})"


def _ran_out(message: str) -> str:
    """Say what a `DeviceMemoryError` says: sizes, and words of this project alone."""
    return f"the model ran {message}"


def not_read(code: str) -> str:
    """Say that a prompt could not be read, as `ControlFailed.code` has it."""
    return f"the prompt could not be read ({code}); the one before it stays in effect"


def loop_ended(loop: str) -> str:
    """Say that a loop which does not lead was given up."""
    return f"{loop} has failed again and again and is given up; the rest goes on"


def session_lost(code: str) -> str:
    """Say that the pool gave a session up, as `SessionLost.code` has it."""
    return _TOLD.get(code, f"the world could not go on ({code})")


def refused(error: RequestRefusedError) -> str:
    """Say why the loop refused; what it refuses by itself (no such chunk) is told as it is."""
    if error.code == FaultCode.OUT_OF_MEMORY:
        return _ran_out(str(error))
    return _TOLD.get(error.code, str(error))


def not_opened(error: PoolError) -> tuple[str, str]:
    """Return the code and the sentence for a session that could not begin."""
    if isinstance(error, RequestRefusedError):
        return error.code, refused(error)
    code = "model_unavailable" if isinstance(error, ModelUnavailableError) else "no_worker"
    return code, NOT_SERVED
