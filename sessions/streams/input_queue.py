"""What was pushed into one input stream and waits to be decoded: bounded in pieces and in bytes."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from reverie.media import RawAudio, RawVideo
from reverie.models.contract.controls import Merge
from reverie.sessions.backend.control_receipts import Tell
from reverie.sessions.protocol.errors import CommandError, ErrorCode


@dataclass(frozen=True, slots=True, eq=False)
class Pushed:
    """One push.

    Attributes:
        command: its id; empty when it came from a track, which asks for no answer.
        done: called once, with what was wrong or with nothing.
        receipt: takes its receipt; None when nobody wants one.
    """

    raw: RawVideo | RawAudio
    command: str
    done: Callable[[CommandError | None], None]
    receipt: Tell | None = None


class InputQueue:
    """The queue of one stream; one consumer takes from it.

    `LATEST` keeps the newest picture alone, the one before gives way; what later pieces need to be
    decoded (H.264, sound) never gives way. `FIFO` keeps all, and refuses what finds no room.
    """

    def __init__(self, merge: Merge, pieces: int, size_bytes: int) -> None:
        self._merge = merge
        self._pieces = pieces
        self._limit_bytes = size_bytes
        self._waiting: deque[Pushed] = deque()
        self._bytes = 0
        self._ready = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def newest_stands_alone(self) -> bool:
        """Whether something waits that makes what came before it worthless."""
        return bool(self._waiting) and self._waiting[-1].raw.stands_alone

    def put(self, pushed: Pushed) -> tuple[Pushed, ...]:
        """Add a push; return those that gave way to it.

        Raises:
            CommandError: there is no room; try again in a moment.
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

    async def take(self) -> Pushed:
        """Wait for the next push and take it. Safe to cancel: then nothing is taken."""
        while not self._waiting:
            self._ready.clear()
            await self._ready.wait()
        pushed = self._waiting.popleft()
        self._bytes -= pushed.raw.size_bytes
        return pushed

    def take_all(self) -> tuple[Pushed, ...]:
        """Take what waits."""
        waiting = tuple(self._waiting)
        self._waiting.clear()
        self._bytes = 0
        return waiting
