"""What can go wrong between a session and the worker that runs it.

PoolError
├── UnknownDeploymentError   no model of that name is served; the caller's mistake
├── SessionExistsError       a session of that id is live; the caller's mistake
├── PoolFullError            every slot is taken and the queue is full; try again later
├── PoolClosedError          the pool is shutting down; nothing will come any more
├── ModelUnavailableError    the model's worker could not be (re)started; an operator must look
├── RequestRefusedError      the worker refused; nothing has changed, the session continues
├── WorkerLostError          the worker died or hung while it was asked; the session recovers
├── AskTimeoutError          no answer within the limit; the worker is replaced
├── LeaseEndedError          the lease was released, or its session lost; the caller's mistake
├── WarmUpError              a model failed before its first session; the worker's load fails
└── ConnectionClosedError    the other end of a connection is gone; inside this room only
"""


class PoolError(Exception):
    """Base of all errors of this package."""


class UnknownDeploymentError(PoolError):
    """No model of that name is served."""


class SessionExistsError(PoolError):
    """A session of that id is live."""


class PoolFullError(PoolError):
    """Every slot is taken, and the queue is full.

    Attributes:
        retry_after_s: when it is worth trying again.
        limit: sessions that may wait.
    """

    def __init__(self, message: str, retry_after_s: float, limit: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.limit = limit


class PoolClosedError(PoolError):
    """The pool is shutting down."""


class ModelUnavailableError(PoolError):
    """The model could not be loaded, or its worker died too often.

    Attributes:
        code: `model_unavailable`, or more closely `out_of_memory` or `device_lost`.
    """

    def __init__(self, message: str, code: str = "model_unavailable") -> None:
        super().__init__(message)
        self.code = code


class RequestRefusedError(PoolError):
    """The worker refused a request; nothing has changed.

    Attributes:
        code: stable and short, such as `unknown_chunk`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class WorkerLostError(PoolError):
    """The worker died or hung before it answered; whether it acted is not known."""


class AskTimeoutError(PoolError):
    """The worker did not answer within the limit."""


class LeaseEndedError(PoolError):
    """The lease was released, or its session was lost."""


class WarmUpError(PoolError):
    """A model failed before its first session.

    Attributes:
        code: as in `LoadFailed`.
    """

    def __init__(self, message: str, code: str = "load_failed") -> None:
        super().__init__(message)
        self.code = code


class ConnectionClosedError(PoolError):
    """The other end of the connection is gone."""
