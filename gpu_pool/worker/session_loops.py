"""The loops of a session in the worker: which leads, which have media, and where they are."""

from typing import Any

from reverie.engine.driver import LoopDriver
from reverie.engine.errors import UnknownLoopError
from reverie.engine.loop_status import Position


class SessionLoops:
    """The drivers of one session. Step thread only."""

    def __init__(self, drivers: dict[str, LoopDriver[Any]], leading: str, timing: str) -> None:
        """Hold the loops of one session.

        Args:
            drivers: of each loop by name; the session adds and replaces them.
            leading: the loop whose chunks are the session's.
            timing: the loop whose chunks are meant where none is named: the first with media.
        """
        self._drivers = drivers
        self._leading = leading
        self._timing = timing

    @property
    def leading(self) -> LoopDriver[Any]:
        """The driver whose chunks are the session's."""
        return self._drivers[self._leading]

    @property
    def position(self) -> Position:
        """The newest chunk and the next media time."""
        return self.leading.position

    def driver(self, loop: str) -> LoopDriver[Any]:
        """Return the driver of a loop.

        Raises:
            UnknownLoopError: the program runs none of that name.
        """
        if loop not in self._drivers:
            raise UnknownLoopError(f"no loop {loop!r}; known: {', '.join(self._drivers)}")
        return self._drivers[loop]

    @property
    def state_chunks(self) -> dict[str, int]:
        """The chunk that the state of each loop with media is after."""
        return {driver.loop: driver.position.chunk for driver in self._paced()}

    def back_us(self, loop: str | None) -> int:
        """Return when the state of a loop, or else of the leading one, was put out."""
        return self._told(loop or "").media_us(None)

    def _paced(self) -> list[LoopDriver[Any]]:
        return [driver for driver in self._drivers.values() if driver.is_paced]

    def _told(self, loop: str) -> LoopDriver[Any]:
        """Return the loop whose chunks are spoken of: the first with media where none is named."""
        return self.driver(loop or self._timing)

    def _followers(self) -> list[LoopDriver[Any]]:
        return [driver for driver in self._all_alive() if driver is not self.leading]

    def _all_alive(self) -> list[LoopDriver[Any]]:
        """Return the drivers that have not ended; the leading one always, for it to say so."""
        return [
            driver
            for driver in self._drivers.values()
            if driver is self.leading or not driver.ended
        ]
