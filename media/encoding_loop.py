"""The loop of both fan-outs: one piece of work after another, on a thread, with a time limit."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from reverie.media.errors import EncodeError, MediaError
from reverie.media.job_thread import JobThread

T = TypeVar("T")

NextWork = Callable[[], Coroutine[Any, Any, None] | None]
"""Returns the next piece of work, or None while there is none."""


class EncodingLoop:
    """Works until `close`, and sleeps while there is nothing to do. Belongs to one event loop."""

    def __init__(self, thread: str, encoder: str, limit_s: float) -> None:
        """Start nothing yet: `run` does.

        Args:
            thread: the name of the encoding thread.
            encoder: what error texts call an encoder, with its article.
            limit_s: work on the thread that takes longer counts as failed.
        """
        self._encoder = encoder
        self._limit_s = limit_s
        self._closed = False
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()  # nothing waits and nothing is being encoded
        self._idle.set()
        self._thread = JobThread(thread)

    @property
    def closed(self) -> bool:
        """Whether `close` was called, or `run` has ended."""
        return self._closed

    def stir(self) -> None:
        """Note that there is work."""
        self._idle.clear()
        self._wake.set()

    async def drain(self) -> None:
        """Return once there is no work left, or `run` has ended. Safe to cancel."""
        await self._idle.wait()

    def close(self) -> None:
        """End `run` after the work in hand. Idempotent."""
        self._closed = True
        self._wake.set()

    async def run(self, next_work: NextWork) -> None:
        """Do what `next_work` returns until `close`. Run it once, and `shut_down` afterwards.

        Raises:
            MediaError: an encoder failed or took too long.
        """
        try:
            while not self._closed:
                work = next_work()
                if work is not None:
                    await work
                    continue
                self._wake.clear()
                self._idle.set()
                await self._wake.wait()
        finally:
            self._closed = True
            self._idle.set()

    def shut_down(self, last: Callable[[], None] | None = None) -> None:
        """End the thread after its current work and `last`, without waiting for it."""
        if last is not None:
            self._thread.submit(last)
        self._thread.shutdown(wait=False)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run `work` on the encoding thread, under the time limit.

        Raises:
            MediaError: it failed or took too long.
        """
        running = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            async with asyncio.timeout(self._limit_s):
                return await running
        except TimeoutError as error:
            raise EncodeError(f"{self._encoder} took over {self._limit_s:g} s") from error
        except (MediaError, asyncio.CancelledError):
            raise
        except Exception as error:
            raise EncodeError(f"{self._encoder} failed: {error!r}") from error
