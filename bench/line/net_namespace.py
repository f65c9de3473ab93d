"""A network apart from this machine's: a network namespace that exists for a block.

A thread enters it (`entered`), and sockets that it opens meanwhile stay there; a command is run
there through `inside`.
"""

import ctypes
import itertools
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

LIMIT_S = 20.0
_CLONE_NEWNET = 0x40000000
_numbers = itertools.count(1)


class NetNamespaceError(OSError):
    """A network namespace cannot be made here; the text says why."""


@dataclass(frozen=True, slots=True)
class NetNamespace:
    """A network that exists for as long as its `made` block lasts, at first with loopback only."""

    name: str

    @classmethod
    @contextmanager
    def made(cls) -> Iterator[Self]:
        """Make a namespace, and delete it whatever happens.

        Raises:
            NetNamespaceError: it cannot be made here.
        """
        found = cls(f"reverie-{os.getpid()}-{next(_numbers)}")
        run_ip("netns", "add", found.name)
        try:
            found.ip("link", "set", "lo", "up")
            yield found
        finally:
            run_ip("netns", "del", found.name)

    def inside(self, command: Sequence[str]) -> list[str]:
        """Return the command that runs a command in the namespace."""
        return ["ip", "netns", "exec", self.name, *command]

    def ip(self, *arguments: str) -> None:
        """Run `ip` on the namespace.

        Raises:
            NetNamespaceError: it has failed.
        """
        run_ip("-n", self.name, *arguments)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Have this thread open its sockets in the namespace, and threads that it starts."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        own = os.open(f"/run/netns/{self.name}", os.O_RDONLY)
        try:
            _enter(own)
            try:
                yield
            finally:
                _enter(before)
        finally:
            os.close(own)
            os.close(before)


def run_ip(*arguments: str) -> None:
    """Run `ip`.

    Raises:
        NetNamespaceError: it is missing or has failed; names the command and the need of root.
    """
    try:
        subprocess.run(
            ["ip", *arguments], check=True, capture_output=True, text=True, timeout=LIMIT_S
        )
    except FileNotFoundError:
        raise NetNamespaceError("there is no `ip` (Debian: iproute2)") from None
    except subprocess.TimeoutExpired:
        raise NetNamespaceError(f"ip {' '.join(arguments)}: took over {LIMIT_S:g} s") from None
    except subprocess.CalledProcessError as error:
        as_whom = "" if os.geteuid() == 0 else " (this needs root)"
        said = f"ip {' '.join(arguments)}: {error.stderr.strip()}{as_whom}"
        raise NetNamespaceError(said) from None


def _enter(handle: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(handle, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise NetNamespaceError(number, f"setns: {os.strerror(number)}")
