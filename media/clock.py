"""The clock of media and sessions: monotonic, and passed in so that tests control it."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Time that never runs backwards."""

    def now_us(self) -> int:
        """Return microseconds since a fixed moment."""

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` have passed; 0 or less yields once. Safe to cancel."""


class MonotonicClock:
    """The machine's clock."""

    def now_us(self) -> int:
        """Return microseconds since about the start of the machine."""
        return time.monotonic_ns() // 1000

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` have passed."""
        await asyncio.sleep(max(0.0, seconds))
