"""Networks of a test's own, by `reverie.bench.line`: one with a cable, and a line between two.

WebRTC never uses loopback, and may not depend on this machine's network. Where a network namespace
cannot be made, tests skip with the reason, and in CI (`CI=true`) they fail.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TypeVar

import pytest

from reverie.bench.line import EmulatedLine, NetNamespace, PathSettings

ADDRESS = "10.200.0.1"
_NEAR, _FAR = "rva", "rvb"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CabledNamespace(NetNamespace):
    """A namespace that holds both ends of a cable, with one address, by which all inside meet."""

    def cut(self) -> None:
        """Pull the cable: nothing but loopback gets through any more."""
        self.ip("link", "set", _FAR, "down")
        self.ip("addr", "flush", "dev", _NEAR)

    def mend(self) -> None:
        """Plug the cable in again."""
        self.ip("link", "set", _FAR, "up")
        self._address()

    def wire(self) -> None:
        """Lay the cable."""
        self.ip("link", "add", _NEAR, "type", "veth", "peer", "name", _FAR)
        self.ip("link", "set", _NEAR, "up")
        self.ip("link", "set", _FAR, "up")
        self._address()

    def _address(self) -> None:
        self.ip("addr", "add", f"{ADDRESS}/24", "dev", _NEAR)
        self.ip("route", "add", "default", "dev", _NEAR)


@contextmanager
def namespace_or_skip() -> Iterator[CabledNamespace]:
    """Make a namespace for a test, which is skipped where that cannot be; in CI it fails."""
    with made_or_skip(CabledNamespace.made()) as namespace:
        namespace.wire()
        yield namespace


@contextmanager
def line_or_skip(
    settings: PathSettings | None = None,
    *,
    uplink: PathSettings | None = None,
    near: NetNamespace | None = None,
    number: int = 0,
) -> Iterator[EmulatedLine]:
    """Lay a line for a test (see `EmulatedLine.laid`); it is skipped where that cannot be."""
    with made_or_skip(
        EmulatedLine.laid(settings, uplink=uplink, near=near, number=number, seed=1)
    ) as line:
        yield line


@contextmanager
def made_or_skip(made: AbstractContextManager[T]) -> Iterator[T]:
    """Enter what needs a network namespace; a test is skipped where there is none."""
    try:
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
