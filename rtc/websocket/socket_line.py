"""The line of one attachment over a WebSocket: pictures are held, and their bitrate follows it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from reverie.media import Clock, MonotonicClock
from reverie.rtc.websocket.bitrate_search import BitrateSearch
from reverie.rtc.websocket.send_backlog import SendBacklog
from reverie.rtc.websocket.socket_reading import SocketReading
from reverie.sessions.attachments.attachment import Attachment

HELD_S = 0.008
"""Between readings while pictures are held: a line that runs dry waits for so long at most."""

BUSY_S = 0.02
"""Between readings while anything is on its way."""


class SocketLine:
    """Tells an attachment what its socket takes."""

    def __init__(
        self,
        read: Callable[[], SocketReading],
        attachment: Attachment,
        clock: Clock | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            read: says what waits to be sent.
            attachment: is told whether pictures are held, and their bitrate.
            clock: the machine's by default, for tests.
        """
        self._read = read
        self._attachment = attachment
        self._clock = clock or MonotonicClock()
        self._backlog = SendBacklog()
        self._search = BitrateSearch()
        self._written = self._pictures = 0  # bytes
        self._news = asyncio.Event()

    def wrote(self, size_bytes: int, picture_bytes: int) -> None:
        """Note a message that was written, and the part of it that is a picture."""
        self._written += size_bytes
        self._pictures += picture_bytes
        if picture_bytes:
            self._note()  # before the next picture is encoded
        self._news.set()

    async def watch(self) -> None:
        """Read again while anything is on its way."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._note():
                await self._clock.sleep(HELD_S if self._backlog.held else BUSY_S)

    def _note(self) -> bool:
        """Take a reading; return whether anything is on its way."""
        reading, now_us = self._read(), self._clock.now_us()
        # The kernel remembers the least for minutes, and a line that has become longer is no queue.
        least_us = max(reading.least_round_trip_us, self._attachment.round_trip.least_us)
        reading = replace(reading, least_round_trip_us=least_us)
        self._backlog.note(reading, self._written, now_us)
        drained = self._backlog.bytes_per_s
        share = self._pictures / self._written if self._written else 1.0
        bits = None if drained is None else drained * 8 * share
        self._search.note(self._backlog.held, bits, self._pictures, now_us)
        self._attachment.limit_video(self._search.bits_per_s)
        self._attachment.hold_video(self._backlog.held)
        return reading.outstanding_bytes > 0
