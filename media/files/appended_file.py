"""A growing file on disk: appended to by one thread, in order, without waiting for it."""

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class AppendedFile:
    """A file that only grows. For one event loop; the executor writes."""

    def __init__(
        self,
        path: Path,
        executor: Executor,
        failed: Callable[[str], None],
        pending_bytes: int = 32 * 2**20,
        open_file: Callable[[Path], int] | None = None,
    ) -> None:
        """Create the file with the first append; it must not exist yet.

        Args:
            executor: runs one job at a time.
            failed: called once, on the event loop, with why no more can be written: `disk_full`,
                `disk_slow` (more than `pending_bytes` are waiting) or `write_failed`.
            pending_bytes: how much may wait for the disk.
            open_file: returns a descriptor to append to; called by the executor.
        """
        self._path = path
        self._executor = executor
        self._failed = failed
        self._pending_limit = pending_bytes
        self._open_file = open_file or create_file
        self.failure: str | None = None  # why no more can be written
        self._pending: deque[bytes] = deque()
        self._pending_bytes = 0
        self._descriptor: int | None = None
        self._writing = False
        self._idle = asyncio.Event()
        self._idle.set()

    def append(self, data: bytes) -> None:
        """Append soon. After a failure it does nothing."""
        if self.failure is not None or not data:
            return
        self._pending_bytes += len(data)
        if self._pending_bytes > self._pending_limit:
            self._fail("disk_slow")
            return
        self._pending.append(data)
        if not self._writing:
            self._write_next()

    async def close(self) -> None:
        """Return once everything is written, or failed, and the file is closed."""
        await self._idle.wait()
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            await asyncio.get_running_loop().run_in_executor(self._executor, os.close, descriptor)

    def _write_next(self) -> None:
        data = b"".join(self._pending)
        self._pending.clear()
        self._writing = True
        self._idle.clear()
        running = asyncio.get_running_loop().run_in_executor(self._executor, self._write, data)
        running.add_done_callback(lambda done: self._written(done, len(data)))

    def _write(self, data: bytes) -> None:
        if self._descriptor is None:
            self._descriptor = self._open_file(self._path)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def _written(self, done: "asyncio.Future[None]", size: int) -> None:
        self._writing = False
        self._pending_bytes -= size
        error = None if done.cancelled() else done.exception()
        if isinstance(error, OSError):
            self._fail("disk_full" if error.errno in _FULL else "write_failed")
        elif error is not None:
            self._fail("write_failed")
        if self._pending and self.failure is None:
            self._write_next()
        else:
            self._idle.set()

    def _fail(self, reason: str) -> None:
        if self.failure is None:
            self.failure = reason
            self._pending.clear()
            self._failed(reason)


def create_file(path: Path) -> int:
    """Return a descriptor to append to a new file that only its owner may read.

    Raises:
        OSError: it exists already, or cannot be created.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600)
