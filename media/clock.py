"""The clock that media and sessions are timed by: monotonic, and passed in so that tests own it."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Time that never runs backwards."""

    def now_us(self) -> int:
        """Return microseconds since some fixed moment."""

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` have passed; 0 or less yields once. Safe to cancel."""


class MonotonicClock:
    """The clock of the machine."""

    def now_us(self) -> int:
        """Return microseconds since the machine started, or thereabouts."""
        return time.monotonic_ns() // 1000

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` have passed."""
        await asyncio.sleep(max(0.0, seconds))
