"""Let a Python process find its whole file system read-only; put this folder on its path.

Python's own way to files, seen through an audit hook: enough for what this project writes itself.
"""

import errno
import os
import sys

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink"}


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        if not isinstance(path, str | bytes) or not isinstance(flags, int) or not flags & _WRITES:
            return
        if os.fsdecode(path).startswith(("/dev/null", "/proc/")):
            return
    elif event not in _CHANGES:
        return
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(arguments[0]))


sys.addaudithook(_refuse)
