"""Requests that a worker has not answered yet."""

import asyncio
import logging
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from itertools import count

from reverie.gpu_pool.wire.errors import AskTimeoutError, PoolError, RequestRefusedError
from reverie.gpu_pool.wire.messages import RequestDone, RequestRefused

logger = logging.getLogger(__name__)

_numbers = count(1)
"""Never used twice, not even by another worker's requests."""


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request on its way.

    Attributes:
        answer: gets the `RequestDone`, or the error. May be cancelled; the answer is noticed all
            the same.
        on_done: called with the answer before any waiter.
        on_failed: called when there will be none, or a refusal.
    """

    number: int
    answer: asyncio.Future[RequestDone]
    timer: asyncio.TimerHandle
    on_done: Callable[[RequestDone], None] | None
    on_failed: Callable[[PoolError], None] | None

    def fail(self, error: PoolError) -> None:
        """End without an answer."""
        if self.on_failed:
            self.on_failed(error)
        if not self.answer.done():
            self.answer.set_exception(error)


class PendingRequests:
    """Numbers requests and matches answers to them.

    Each ends exactly once: by its answer, by its limit, or when the worker is lost.
    """

    def __init__(self, limit_s: float, on_timeout: Callable[[str], None]) -> None:
        """Call `on_timeout` with a reason whenever a request is not answered in time."""
        self._limit_s = limit_s
        self._on_timeout = on_timeout
        self._open: dict[int, PendingRequest] = {}

    def __len__(self) -> int:
        return len(self._open)

    def put(
        self,
        what: str,
        session: str,
        on_done: Callable[[RequestDone], None] | None = None,
        on_failed: Callable[[PoolError], None] | None = None,
    ) -> PendingRequest:
        """Register a request.

        Args:
            what: names it when no answer comes, to every session that loses its worker by it.
            session: the session that asks; named in the log only.
        """
        number = next(_numbers)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._limit_s, self._expire, number, what, session)
        question = PendingRequest(number, loop.create_future(), timer, on_done, on_failed)
        # A caller need not wait for the answer, so an error that is never retrieved is no mistake.
        question.answer.add_done_callback(lambda f: f.cancelled() or f.exception())
        self._open[number] = question
        return question

    def answer(self, message: RequestDone | RequestRefused) -> None:
        """Pass an answer on. One that comes after its limit means nothing."""
        if isinstance(message, RequestRefused):
            self._fail(message.request, RequestRefusedError(message.code, message.message))
        elif question := self._taken(message.request):
            if question.on_done:
                question.on_done(message)
            if not question.answer.done():
                question.answer.set_result(message)

    def fail_all(self, error: PoolError) -> None:
        """Fail every open request."""
        for number in list(self._open):
            self._fail(number, copy(error))

    def _expire(self, number: int, what: str, session: str) -> None:
        reason = f"{what} was not answered within {self._limit_s:g} s"
        if question := self._taken(number):
            logger.error("session %s: %s", session, reason)
            # First of all the worker is out of use, so that nothing is begun on it any more.
            self._on_timeout(reason)
            question.fail(AskTimeoutError(reason))

    def _fail(self, number: int, error: PoolError) -> None:
        if question := self._taken(number):
            question.fail(error)

    def _taken(self, number: int) -> PendingRequest | None:
        question = self._open.pop(number, None)
        if question:
            question.timer.cancel()
        return question
