"""A clock that moves only when a test says so."""

import asyncio


class FakeClock:
    """A `reverie.media.clock.Clock`; `advance` wakes every sleeper that has slept long enough.

    Not thread-safe: for one event loop.
    """

    def __init__(self, now_us: int = 0) -> None:
        self._now_us = now_us
        self._sleepers: list[tuple[int, asyncio.Event]] = []

    @property
    def sleepers(self) -> int:
        """How many tasks sleep now; a test waits for them before it advances."""
        return len(self._sleepers)

    def now_us(self) -> int:
        return self._now_us

    async def sleep(self, seconds: float) -> None:
        due_us = self._now_us + round(seconds * 1_000_000)
        if due_us <= self._now_us:
            await asyncio.sleep(0)
            return
        sleeper = (due_us, asyncio.Event())
        self._sleepers.append(sleeper)
        try:
            await sleeper[1].wait()
        finally:
            self._sleepers.remove(sleeper)

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass."""
        self._now_us += round(seconds * 1_000_000)
        for due_us, woken in self._sleepers:
            if due_us <= self._now_us:
                woken.set()
