"""Memory that two processes share, without a name.

An unlinked file in memory, passed on as a file descriptor. It is gone when the last process that
has it is gone, however that process ended, so there is nothing to unlink and nothing to track
(a named segment outlives a SIGKILL of both sides).
"""

import errno
import mmap
import os
import sys
import tempfile
from typing import Self

_IN_MEMORY = "/dev/shm"


class SharedMemory:
    """A file in memory that has no name; `fileno` may be passed to a child process."""

    def __init__(self, descriptor: int) -> None:
        """Take over `descriptor`, which `create` made in this process or in the parent."""
        self._descriptor = descriptor

    @classmethod
    def create(cls) -> Self:
        """Make an empty one."""
        if sys.platform == "linux":
            return cls(os.memfd_create("reverie", os.MFD_CLOEXEC))
        folder = _IN_MEMORY if os.path.isdir(_IN_MEMORY) else None
        descriptor, path = tempfile.mkstemp(prefix="reverie-", dir=folder)
        os.unlink(path)
        return cls(descriptor)

    def fileno(self) -> int:
        """Return the descriptor, which stays this object's."""
        return self._descriptor

    def duplicate(self) -> Self:
        """Return a second owner of the same memory, as a child process would be."""
        return type(self)(os.dup(self._descriptor))

    def resize(self, size_bytes: int) -> None:
        """Set the size, with all of its memory reserved now.

        Without that, a write to memory that is not there would end the process by SIGBUS.

        Raises:
            OSError: there is not so much memory, or it is more than half of the machine's.
        """
        # The kernel would take even the last page for this, and then end processes to get more.
        if size_bytes > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2:
            raise OSError(errno.ENOMEM, f"{size_bytes} bytes are too much to share")
        os.ftruncate(self._descriptor, size_bytes)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._descriptor, 0, size_bytes)

    def map(self) -> mmap.mmap:
        """Map all of it; the mapping outlives `close`."""
        return mmap.mmap(self._descriptor, os.fstat(self._descriptor).st_size)

    def close(self) -> None:
        """Close the descriptor; idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
