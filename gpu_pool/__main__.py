"""The main program of a worker process; `server/worker_process.py` starts it.

A worker must not outlive the server, however that ends: the kernel kills it with its parent where
it can (Linux); and when the connection ends, it leaves by itself or is made to.
"""

import contextlib
import ctypes
import os
import signal
import socket
import sys
import threading

from reverie.gpu_pool.wire.connection import Connection, SocketConnection
from reverie.gpu_pool.wire.errors import ConnectionClosedError
from reverie.gpu_pool.wire.heartbeat import Heartbeat
from reverie.gpu_pool.wire.messages import FromWorker, ToWorker
from reverie.gpu_pool.wire.shared_memory import SharedMemory
from reverie.gpu_pool.worker.worker import Worker

_PR_SET_PDEATHSIG = 1
_LEAVE_LIMIT_S = 3.0


def main(arguments: list[str]) -> None:
    """Run a worker; `arguments` are the numbers that `ProcessHost.start` passes."""
    parent, connection, ring, beats = (int(argument) for argument in arguments)
    _end_with(parent)
    channel: Connection[FromWorker, ToWorker] = SocketConnection(socket.socket(fileno=connection))
    worker = Worker(channel, SharedMemory(ring), Heartbeat(SharedMemory(beats)), _leave_in_time)
    with contextlib.suppress(ConnectionClosedError):
        worker.run()
    # Threads of libraries may not keep a finished worker alive.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended before the signal was asked for
        os._exit(1)


def _leave_in_time() -> None:
    """Called by the reading thread when the server is gone, while a step may still be running."""
    timer = threading.Timer(_LEAVE_LIMIT_S, os._exit, (1,))
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    main(sys.argv[1:])
