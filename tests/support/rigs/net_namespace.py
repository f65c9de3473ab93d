"""A network of a test's own: WebRTC never uses loopback, and may not depend on this machine's.

A namespace holds a loopback and a pair of cables with one address, by which a server and a browser
inside it find each other. Test code enters it with its own thread (`entered`); what another
process is to do there is run through `inside`. It needs root and Debian's iproute2; where it cannot
be made, tests skip with the reason, and in CI (`CI=true`) they fail.
"""

import ctypes
import itertools
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

ADDRESS = "10.200.0.1"
LIMIT_S = 20.0
_CLONE_NEWNET = 0x40000000
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class NetNamespace:
    """A network that exists for as long as its `made` block lasts."""

    name: str
    cable: str

    @classmethod
    @contextmanager
    def made(cls) -> Iterator["NetNamespace"]:
        """Make a namespace, and delete it whatever happens.

        Raises:
            OSError: it cannot be made here; says why.
        """
        number = next(_numbers)
        found = cls(f"reverie-{os.getpid()}-{number}", f"rv{number}")
        _ip("netns", "add", found.name)
        try:
            found._wire()
            yield found
        finally:
            _ip("netns", "del", found.name)

    def inside(self, command: Sequence[str]) -> list[str]:
        """Return the command that runs a command in the namespace."""
        return ["ip", "netns", "exec", self.name, *command]

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

    def cut(self) -> None:
        """Pull the cable: nothing but loopback gets through any more."""
        _ip("-n", self.name, "link", "set", self.cable + "b", "down")
        _ip("-n", self.name, "addr", "flush", "dev", self.cable + "a")

    def mend(self) -> None:
        """Plug the cable in again."""
        _ip("-n", self.name, "link", "set", self.cable + "b", "up")
        self._address()

    def _wire(self) -> None:
        near, far = self.cable + "a", self.cable + "b"
        _ip("-n", self.name, "link", "set", "lo", "up")
        _ip("-n", self.name, "link", "add", near, "type", "veth", "peer", "name", far)
        _ip("-n", self.name, "link", "set", near, "up")
        _ip("-n", self.name, "link", "set", far, "up")
        self._address()

    def _address(self) -> None:
        near = self.cable + "a"
        _ip("-n", self.name, "addr", "add", f"{ADDRESS}/24", "dev", near)
        _ip("-n", self.name, "route", "add", "default", "dev", near)


@contextmanager
def namespace_or_skip() -> Iterator[NetNamespace]:
    """Make a namespace for a test, which is skipped where that cannot be; in CI it fails."""
    try:
        made = NetNamespace.made()
        found = made.__enter__()
    except OSError as error:
        reason = f"no network namespace can be made here: {error}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    try:
        yield found
    finally:
        made.__exit__(None, None, None)


def _ip(*arguments: str) -> None:
    try:
        subprocess.run(
            ["ip", *arguments], check=True, capture_output=True, text=True, timeout=LIMIT_S
        )
    except FileNotFoundError:
        raise OSError("there is no `ip` (Debian: iproute2)") from None
    except subprocess.CalledProcessError as error:
        raise OSError(f"ip {' '.join(arguments)}: {error.stderr.strip()}") from None


def _enter(handle: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(handle, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, f"setns: {os.strerror(number)}")
