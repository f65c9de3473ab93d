"""What all routes share: the sessions behind them, and whether anything new is let in."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Literal, Protocol

from starlette.requests import HTTPConnection

from reverie.gpu_pool import ModelStatus
from reverie.gpu_pool.wire.shares import Accounts
from reverie.models.contract.spec import ModelSpec
from reverie.rtc.addresses import Addresses
from reverie.rtc.metrics import Metrics
from reverie.rtc.options import ServerOptions
from reverie.rtc.rate_limit import Rates
from reverie.rtc.wire.errors import HttpRefusedError
from reverie.sessions import SessionStore


class Models(Protocol):
    """What this room asks of the pool."""

    @property
    def ready(self) -> bool:
        """Whether every model is loaded and warm."""

    @property
    def specs(self) -> Mapping[str, ModelSpec]:
        """The models that are served, by the name that sessions call them."""

    @property
    def status(self) -> Mapping[str, ModelStatus]:
        """How each model is doing, by the same names."""


class AppContext:
    """The sessions, the models, the limits and the counters of one server."""

    def __init__(
        self,
        store: SessionStore,
        models: Models,
        options: ServerOptions,
        metrics: Metrics | None = None,
    ) -> None:
        self.store = store
        self.models = models
        self.options = options
        self.metrics = metrics or Metrics()
        self.addresses = Addresses(options.trusted_proxies)
        self._rates = {
            "openings": Rates(options.openings_per_min),
            "offers": Rates(options.offers_per_min),
        }
        self.draining = False  # set for good once the server is going down
        self._greetings: set[asyncio.Timeout] = set()
        self._sockets = 0
        self._quiet = asyncio.Event()  # no WebSocket is served
        self._quiet.set()

    @property
    def ready(self) -> bool:
        """Whether a new session would be let in, and not wait behind others."""
        return self.models.ready and not self.draining and not self.exhausted

    @property
    def exhausted(self) -> bool:
        """Whether sessions wait, and one of a newcomer would have to, whatever is asked for."""
        models = self.models.status.values()
        return bool(models) and all(model.crowded for model in models)

    def accounts(self, request: HTTPConnection, owner: str | None = None) -> Accounts:
        """Return whom a request is counted under: its address, and an owner for whom it is."""
        address = self.addresses.of(request)
        if owner is None:
            return self.store.address_accounts(address)
        return self.store.accounts(owner, address)

    def check_rate(
        self, what: Literal["openings", "offers"], request: HTTPConnection, *, count: bool = True
    ) -> None:
        """Count a request of a costly kind.

        Args:
            count: False only looks whether it would be refused.

        Raises:
            HttpRefusedError: too many have come from its address.
        """
        rates = self._rates[what]
        now_s = asyncio.get_running_loop().time()
        wait_s = rates.wait_s(self.addresses.of(request), now_s, take=count)
        if wait_s:
            text = f"one address has {rates.per_min} {what} a minute ({what}_per_min)"
            raise HttpRefusedError(
                HTTPStatus.TOO_MANY_REQUESTS, f"too_many_{what}", text, retry_after_s=wait_s
            )

    async def drain(self) -> None:
        """Let nothing new in, end every session, and return when their sockets know.

        Sockets that have not said hello are given up at once.
        """
        self.draining = True
        for greeting in self._greetings:
            greeting.reschedule(asyncio.get_running_loop().time())
        # Half of the time for the sessions leaves half for their sockets and the rest.
        await self.store.drain(self.options.drain_timeout_s / 2)
        await self._quiet.wait()

    @contextmanager
    def socket(self) -> Iterator[None]:
        """Count a WebSocket for as long as the block lasts."""
        self._sockets += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._sockets -= 1
            if not self._sockets:
                self._quiet.set()

    @asynccontextmanager
    async def greeting(self, limit_s: float | None = None) -> AsyncIterator[None]:
        """Limit the time of a block, and end it at once when draining begins.

        Args:
            limit_s: None takes `hello_timeout_s`.

        Raises:
            TimeoutError: time is up, or the server is going down.
        """
        wanted_s = self.options.hello_timeout_s if limit_s is None else limit_s
        async with asyncio.timeout(0 if self.draining else wanted_s) as limit:
            self._greetings.add(limit)
            try:
                yield
            finally:
                self._greetings.discard(limit)
