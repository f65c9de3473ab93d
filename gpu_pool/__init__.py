"""Where models live: a worker for each, supervised, and the sessions' way to it.

`Pool` is what the rooms above use: `lease` a slot for a session, `send` and `ask` through the
lease, hear everything through a sink. Start reading at `pool.py` for the server's side and at
`worker.py` for the worker's, where `resident.py` is a session; between them lie `connection.py`
(messages) and `ring.py` (frames).

Imports engine and models; never sessions, rtc or a codec.
"""

from reverie.gpu_pool.errors import (
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
from reverie.gpu_pool.lease import Lease
from reverie.gpu_pool.notices import Notice, Recovered, SessionLost, Sink, WorkerLost
from reverie.gpu_pool.opening import Opening, Origin
from reverie.gpu_pool.options import ModelOptions, PoolOptions
from reverie.gpu_pool.pool import ModelStatus, Pool

__all__ = [
    "AskTimeoutError",
    "Lease",
    "LeaseEndedError",
    "ModelOptions",
    "ModelStatus",
    "ModelUnavailableError",
    "Notice",
    "Opening",
    "Origin",
    "Pool",
    "PoolClosedError",
    "PoolError",
    "PoolFullError",
    "PoolOptions",
    "Recovered",
    "RequestRefusedError",
    "SessionExistsError",
    "SessionLost",
    "Sink",
    "UnknownDeploymentError",
    "WorkerLost",
    "WorkerLostError",
]
