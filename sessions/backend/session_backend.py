"""What sessions need of the pool that runs the models."""

from collections.abc import Callable, Mapping
from typing import Protocol

from reverie.gpu_pool.wire.messages import RequestDone
from reverie.gpu_pool.wire.notifications import Sink
from reverie.gpu_pool.wire.session_messages import OneWay, Request
from reverie.gpu_pool.wire.shares import Accounts
from reverie.gpu_pool.wire.start_request import StartRequest
from reverie.models.contract.spec import ModelSpec

OnPosition = Callable[[int], None]
"""Called with the position in the wait queue, from 1 on, whenever it changes."""


class SessionHandle(Protocol):
    """A session's place on an instance, until it is released."""

    def send(self, message: OneWay) -> None:
        """Send the loop a message that needs no answer. Never waits."""

    async def ask(self, message: Request) -> RequestDone:
        """Send the loop a request and wait for its answer; the request number is filled in.

        Raises:
            PoolError: it was refused, or its worker was lost.
        """

    async def release(self) -> None:
        """End the loop and give the place back; idempotent."""


class SessionBackend(Protocol):
    """The pool's models and the places on them."""

    @property
    def specs(self) -> Mapping[str, ModelSpec]:
        """The models that are served, by the name that sessions call them."""

    def expected_position(self, model: str, accounts: Accounts) -> int:
        """Return what a session would get now: 0 is a place, else its position in the line.

        Raises:
            PoolError: the wait queue is full, or the model cannot run.
        """

    async def lease(
        self, opening: StartRequest, sink: Sink, on_position: OnPosition
    ) -> SessionHandle:
        """Wait for a place and open the loop in it.

        Raises:
            PoolError: the wait queue is full, or the model cannot run.
        """
