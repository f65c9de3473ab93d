"""Where models live: a worker for each, supervised, and the sessions' way to it.

`Pool` is what the packages above use: `lease` a slot for a session, `send` and `ask` through the
lease, get everything through a sink. Start at `server/pool.py` for the server's side and at
`worker/worker.py` for the worker's, where `worker_session.py` is a session. Between them lie
`wire/messages.py` and `wire/session_messages.py`, `wire/connection.py` and, for frames,
`wire/ring.py`.

Imports engine and models; never sessions, rtc or a codec.
"""

from reverie.gpu_pool.server.pool import ModelStatus, Pool
from reverie.gpu_pool.server.worker_handle import WorkerHandle
from reverie.gpu_pool.wire.errors import (
    AskTimeoutError,
    LeaseEndedError,
    ModelUnavailableError,
    PoolClosedError,
    PoolError,
    PoolFullError,
    RequestRefusedError,
    SessionExistsError,
    UnknownDeploymentError,
    WorkerLostError,
)
from reverie.gpu_pool.wire.notifications import (
    Notification,
    SessionLost,
    SessionRecovered,
    Sink,
    WorkerLost,
)
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.gpu_pool.wire.start_request import ForkOrigin, StartRequest

__all__ = [
    "AskTimeoutError",
    "ForkOrigin",
    "LeaseEndedError",
    "ModelOptions",
    "ModelStatus",
    "ModelUnavailableError",
    "Notification",
    "Pool",
    "PoolClosedError",
    "PoolError",
    "PoolFullError",
    "PoolOptions",
    "RequestRefusedError",
    "SessionExistsError",
    "SessionLost",
    "SessionRecovered",
    "Sink",
    "StartRequest",
    "UnknownDeploymentError",
    "WorkerHandle",
    "WorkerLost",
    "WorkerLostError",
]
