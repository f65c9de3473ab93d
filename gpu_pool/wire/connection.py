"""Messages between the server and a worker: over a socket to a process, or by queue to a thread.

Both ends block, so each is read by a thread of its own. Messages sent in one call arrive in one
call, which lets the sender say several things at once ("begin, paused"). Pickle is right here: both
ends are ours, of one version, and no other program can connect to a socket without a name.
"""

import contextlib
import pickle
import queue
import socket
import struct
import threading
from typing import Generic, Protocol, TypeVar, cast

from reverie.gpu_pool.wire.errors import ConnectionClosedError

_LENGTH = struct.Struct("!Q")

Out = TypeVar("Out")
In = TypeVar("In")
Out_contra = TypeVar("Out_contra", contravariant=True)
In_co = TypeVar("In_co", covariant=True)


class Connection(Protocol[Out_contra, In_co]):
    """One end. One thread may send while another receives."""

    def send(self, *messages: Out_contra) -> None:
        """Send messages that are to arrive together; blocks while the other end does not read.

        Raises:
            ConnectionClosedError: the other end, or this one, is closed.
        """

    def receive(self) -> tuple[In_co, ...]:
        """Wait for the messages of one `send`.

        Raises:
            ConnectionClosedError: the other end, or this one, is closed.
        """

    def close(self) -> None:
        """End both directions; a call that blocks on either end gets `ConnectionClosedError`."""


class SocketConnection(Generic[Out, In]):
    """An end of a socket pair; the other one is in another process."""

    def __init__(self, end: socket.socket) -> None:
        """Take over a connected stream socket."""
        self._socket = end

    def send(self, *messages: Out) -> None:
        """Pickle and send; see `Connection`."""
        payload = pickle.dumps(messages, protocol=pickle.HIGHEST_PROTOCOL)
        try:
            self._socket.sendall(_LENGTH.pack(len(payload)) + payload)
        except OSError as error:
            raise ConnectionClosedError(str(error)) from error

    def receive(self) -> tuple[In, ...]:
        """Wait and unpickle; see `Connection`."""
        (size,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return cast(tuple[In, ...], pickle.loads(self._exactly(size)))

    def close(self) -> None:
        """End both directions; a second call does nothing."""
        # A plain close would leave a thread that blocks in recv where it is.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _exactly(self, size: int) -> bytearray:
        received = bytearray(size)
        view = memoryview(received)
        try:
            while view:
                count = self._socket.recv_into(view)
                if not count:
                    raise ConnectionClosedError("the other end is closed")
                view = view[count:]
        except OSError as error:
            raise ConnectionClosedError(str(error)) from error
        return received


class QueueConnection(Generic[Out, In]):
    """An end of a pair of queues; the other one is in another thread."""

    def __init__(
        self,
        outgoing: "queue.SimpleQueue[tuple[Out, ...] | None]",
        incoming: "queue.SimpleQueue[tuple[In, ...] | None]",
        closed: threading.Event,
    ) -> None:
        """Use `queue_pair` instead. None in a queue means the end; both ends share `closed`."""
        self._outgoing = outgoing
        self._incoming = incoming
        self._closed = closed

    def send(self, *messages: Out) -> None:
        """Put into the queue; see `Connection`."""
        if self._closed.is_set():
            raise ConnectionClosedError("closed")
        self._outgoing.put(messages)

    def receive(self) -> tuple[In, ...]:
        """Take from the queue; see `Connection`."""
        messages = self._incoming.get()
        if messages is None:
            self._incoming.put(None)
            raise ConnectionClosedError("closed")
        return messages

    def close(self) -> None:
        """End both directions, after what has been sent; a second call does nothing."""
        if not self._closed.is_set():
            self._closed.set()
            self._outgoing.put(None)
            self._incoming.put(None)


def queue_pair() -> tuple[QueueConnection[Out, In], QueueConnection[In, Out]]:
    """Return two ends that are connected."""
    there: queue.SimpleQueue[tuple[Out, ...] | None] = queue.SimpleQueue()
    back: queue.SimpleQueue[tuple[In, ...] | None] = queue.SimpleQueue()
    closed = threading.Event()
    return QueueConnection(there, back, closed), QueueConnection(back, there, closed)
