"""Pushes of one input stream that wait to be decoded, bounded in pieces and in bytes."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from reverie.media import RawAudio, RawVideo
from reverie.models.contract.controls import Merge
from reverie.sessions.backend.control_receipts import Tell
from reverie.sessions.protocol.errors import CommandError, ErrorCode


@dataclass(frozen=True, slots=True, eq=False)
class MediaPush:
    """One push.

    Attributes:
        command: its id; empty when it came from a track, which gets no answer.
        done: called once, with an error or None.
        receipt: takes the receipt; None when the client wants none.
    """

    raw: RawVideo | RawAudio
    command: str
    done: Callable[[CommandError | None], None]
    receipt: Tell | None = None


class InputQueue:
    """The queue of one stream; one consumer takes from it.

    `LATEST` keeps only the newest picture. Pieces that later ones need for decoding (H.264, sound)
    are never dropped. `FIFO` keeps all, and refuses what has no room.
    """

    def __init__(self, merge: Merge, pieces: int, size_bytes: int) -> None:
        self._merge = merge
        self._pieces = pieces
        self._limit_bytes = size_bytes
        self._waiting: deque[MediaPush] = deque()
        self._bytes = 0
        self._ready = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def newest_stands_alone(self) -> bool:
        """Whether the newest push replaces all earlier ones."""
        return bool(self._waiting) and self._waiting[-1].raw.stands_alone

    def put(self, pushed: MediaPush) -> tuple[MediaPush, ...]:
        """Add a push; return those that it replaces.

        Raises:
            CommandError: there is no room; try again soon.
        """
        size_bytes = pushed.raw.size_bytes
        takes_over = self._merge is Merge.LATEST and pushed.raw.stands_alone
        self._check_room(size_bytes, takes_over)
        gone = self.take_all() if takes_over else ()
        self._waiting.append(pushed)
        self._bytes += size_bytes
        self._ready.set()
        return gone

    def _check_room(self, size_bytes: int, takes_over: bool) -> None:
        if not takes_over and len(self._waiting) >= self._pieces:
            text = f"{self._pieces} pieces wait in this stream already (input_pieces)"
            raise CommandError(ErrorCode.TOO_MANY, text, field="stream", retry_after_s=0.1)
        if (0 if takes_over else self._bytes) + size_bytes > self._limit_bytes:
            text = f"a stream holds at most {self._limit_bytes} bytes (input_bytes)"
            raise CommandError(ErrorCode.TOO_MANY, text, field="stream", retry_after_s=0.1)

    async def take(self) -> MediaPush:
        """Wait for the next push and take it. Safe to cancel: then nothing is taken."""
        while not self._waiting:
            self._ready.clear()
            await self._ready.wait()
        pushed = self._waiting.popleft()
        self._bytes -= pushed.raw.size_bytes
        return pushed

    def take_all(self) -> tuple[MediaPush, ...]:
        """Take all that wait."""
        waiting = tuple(self._waiting)
        self._waiting.clear()
        self._bytes = 0
        return waiting
