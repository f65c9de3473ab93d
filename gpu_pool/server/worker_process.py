"""A worker as a process of its own: how it starts, ends with its parent, and is killed.

A new interpreter, not a fork (threads and CUDA do not survive one) and not `multiprocessing`, which
would run the user's main script again. It inherits three file descriptors and nothing else.

What happens in the new interpreter is in `gpu_pool/__main__.py`.
"""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Protocol

from reverie.gpu_pool.wire.connection import Connection, SocketConnection
from reverie.gpu_pool.wire.heartbeat import Heartbeat
from reverie.gpu_pool.wire.messages import FromWorker, ToWorker
from reverie.gpu_pool.wire.shared_memory import SharedMemory

_SENT_BY_OTHERS = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_VMSTAT = Path("/proc/vmstat")


class WorkerHost(Protocol):
    """Where a worker runs, seen from the server. It runs once."""

    connection: Connection[ToWorker, FromWorker]
    ring: SharedMemory
    heartbeat: Heartbeat

    def start(self) -> None:
        """Start it. The calling thread must stay until the worker has ended."""

    def kill(self) -> None:
        """End it as soon as can be, without waiting; a second call does nothing."""

    def wait(self, limit_s: float | None) -> str | None:
        """Block until it has ended and return how; None when the limit came first."""

    def ended_by_others(self) -> bool:
        """Tell whether another program has ended it: not a fault of its own, nor `kill`."""

    def close(self) -> None:
        """Close what is left of an ended worker."""


class ProcessHost:
    """A worker in a process of its own."""

    def __init__(self) -> None:
        """Prepare everything but the process."""
        self.ring = SharedMemory.create()
        self._beats = SharedMemory.create()
        Heartbeat.prepare(self._beats)
        self.heartbeat = Heartbeat(self._beats)
        ours, self._theirs = socket.socketpair()
        self.connection: Connection[ToWorker, FromWorker] = SocketConnection(ours)
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False
        self._killed_here = False  # while it was running
        self._out_of_memory_before: int | None = None

    @property
    def pid(self) -> int | None:
        """The process id, once started."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the interpreter; returns before it has loaded anything.

        The death signal that the worker asks for is tied to the thread that calls this.
        """
        descriptors = (self._theirs.fileno(), self.ring.fileno(), self._beats.fileno())
        self._out_of_memory_before = _out_of_memory_kills()
        numbers = [str(number) for number in (os.getpid(), *descriptors)]
        self._process = subprocess.Popen(
            # -P: the folder that the server runs in is not to be imported from by accident.
            [sys.executable, "-P", "-m", "reverie.gpu_pool", *numbers],
            stdin=subprocess.DEVNULL,
            pass_fds=descriptors,
            process_group=0,  # a Ctrl-C at the terminal is for the server, which then decides
        )
        # Only the worker may hold its end, or its death would go unnoticed.
        self._theirs.close()
        if self._killed:
            self._process.kill()

    def kill(self) -> None:
        """Kill the process; see `WorkerHost`."""
        self._killed = True
        if self._process and self._process.poll() is None:
            self._killed_here = True
            self._process.kill()
        self.connection.close()

    def wait(self, limit_s: float | None) -> str | None:
        """Wait for the process; see `WorkerHost`."""
        if self._process is None:
            return "not started"
        try:
            code = self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        if code >= 0:
            return f"exit code {code}"
        why = " as memory ran out" if code == -signal.SIGKILL and self._ran_out_of_memory() else ""
        return f"killed by {signal.Signals(-code).name}{why}"

    def ended_by_others(self) -> bool:
        """Tell whether it was a signal that only others send; see `WorkerHost`.

        The kernel's kill when memory runs out is none of these: a session may have used it all.
        """
        code = self._process.poll() if self._process else None
        if code is None or self._killed_here or self._ran_out_of_memory():
            return False
        return -code in _SENT_BY_OTHERS

    def close(self) -> None:
        """Close what is shared; see `WorkerHost`."""
        self.connection.close()
        self._theirs.close()
        self.ring.close()
        self._beats.close()

    def _ran_out_of_memory(self) -> bool:
        return _out_of_memory_kills() != self._out_of_memory_before


def _out_of_memory_kills() -> int | None:
    """Return how many processes the kernel has ended for memory; None where that is not said."""
    try:
        lines = _VMSTAT.read_text().splitlines()
    except OSError:
        return None
    found = (line.split() for line in lines if line.startswith("oom_kill "))
    return next((int(parts[1]) for parts in found), None)
