"""What all routes share: sessions, models, limits, metrics, and whether the server drains."""

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
    """What this package needs of the pool."""

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
        self.draining = False  # set for good when the server shuts down
        self._handshakes: set[asyncio.Timeout] = set()
        self._sockets = 0
        self._no_sockets = asyncio.Event()
        self._no_sockets.set()

    @property
    def ready(self) -> bool:
        """Whether a new session would begin at once."""
        return self.models.ready and not self.draining and not self.exhausted

    @property
    def exhausted(self) -> bool:
        """Whether sessions wait for every model, and one of a new owner would have to, too."""
        models = self.models.status.values()
        return bool(models) and all(model.crowded for model in models)

    def accounts(self, request: HTTPConnection, owner: str | None = None) -> Accounts:
        """Return the accounts that a request counts for: its address, and its owner if any."""
        address = self.addresses.of(request)
        if owner is None:
            return self.store.address_accounts(address)
        return self.store.accounts(owner, address)

    def check_rate(
        self, what: Literal["openings", "offers"], request: HTTPConnection, *, count: bool = True
    ) -> None:
        """Count a request of an expensive kind.

        Args:
            count: False only looks whether it would be refused.

        Raises:
            HttpRefusedError: its address has sent too many.
        """
        rates = self._rates[what]
        now_s = asyncio.get_running_loop().time()
        wait_s = rates.wait_s(self.addresses.of(request), now_s, take=count)
        if wait_s:
            text = f"one address may make {rates.per_min} {what} a minute ({what}_per_min)"
            raise HttpRefusedError(
                HTTPStatus.TOO_MANY_REQUESTS, f"too_many_{what}", text, retry_after_s=wait_s
            )

    async def drain(self) -> None:
        """Refuse everything new, end every session, and return when their sockets are closed.

        Sockets without a hello are closed at once.
        """
        self.draining = True
        for limit in self._handshakes:
            limit.reschedule(asyncio.get_running_loop().time())
        # The sessions get half of the time, so that half is left for their sockets and the rest.
        await self.store.drain(self.options.drain_timeout_s / 2)
        await self._no_sockets.wait()

    @contextmanager
    def socket(self) -> Iterator[None]:
        """Count a WebSocket while the block runs."""
        self._sockets += 1
        self._no_sockets.clear()
        try:
            yield
        finally:
            self._sockets -= 1
            if not self._sockets:
                self._no_sockets.set()

    @asynccontextmanager
    async def handshake(self, limit_s: float | None = None) -> AsyncIterator[None]:
        """Limit the time of a handshake, and end it at once when draining begins.

        Args:
            limit_s: None takes `hello_timeout_s`.

        Raises:
            TimeoutError: time is up, or the server is shutting down.
        """
        wanted_s = self.options.hello_timeout_s if limit_s is None else limit_s
        async with asyncio.timeout(0 if self.draining else wanted_s) as limit:
            self._handshakes.add(limit)
            try:
                yield
            finally:
                self._handshakes.discard(limit)
