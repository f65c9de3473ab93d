"""All WebRTC peers of a server: bounded, found by session and id, run in one TaskGroup."""

import asyncio
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

from reverie.gpu_pool.wire.shares import Accounts
from reverie.rtc.app_context import AppContext
from reverie.rtc.http.refusals import shutting_down
from reverie.rtc.shared_places import Holder, SharedPlaces
from reverie.rtc.webrtc.aiortc_seams import own_addresses
from reverie.rtc.webrtc.bounded_decoding import bound_decoders
from reverie.rtc.webrtc.candidates import CheckBudget, Reach
from reverie.rtc.webrtc.ice import IceServers
from reverie.rtc.webrtc.negotiation import MediaPreferences, negotiate
from reverie.rtc.webrtc.offer import Offer
from reverie.rtc.webrtc.peer import PeerKind, WebRtcPeer
from reverie.rtc.wire.errors import HttpRefusedError, PeerEndedError
from reverie.sessions import Role, ServerSession

RETRY_S = 5.0

ENDINGS = 256
"""Ended peers whose reason is remembered, for clients that could not be told."""

DRIVERS = 4
"""Peers of a session that may drive, or connect to drive, however many only watch.

One drives, one is about to take over, and earlier ones may not be known to be lost yet.
"""


class _Place:
    """A peer's place, from its offer on. A peer that loses its place ends, or never begins."""

    def __init__(
        self, session: str, role: Role, accounts: Accounts, lost: Callable[["_Place"], None]
    ) -> None:
        self.session = session
        self.role = role
        self.peer: WebRtcPeer | None = None
        self.is_lost = False  # to another peer
        self.is_over = False  # freed
        self.holder = Holder(accounts, self._lose, drives=role is Role.DRIVER)
        self._lost = lost

    def _lose(self) -> None:
        self.is_lost = True
        self._lost(self)
        if self.peer is not None:
            self.peer.evict()


class PeerRegistry:
    """Creates peers and runs them. For one event loop."""

    def __init__(self, context: AppContext) -> None:
        """Prepare; peers need `running`."""
        bound_decoders(context.store.input_pixels)
        self.servers = IceServers(context.options.rtc)
        self._context = context
        self._options = context.options.rtc
        self._budget = CheckBudget(time.monotonic)
        self._peers: dict[str, WebRtcPeer] = {}
        self._endings: dict[
            str, tuple[str, PeerEndedError]
        ] = {}  # session and reason, oldest first
        self._places = SharedPlaces(self._options.peers)
        viewers = self._options.peers_per_session - 1  # one place is reserved for the driver
        self._viewers = defaultdict[str, SharedPlaces](lambda: SharedPlaces(viewers))
        self._drivers = defaultdict[str, int](int)
        self._tasks: asyncio.TaskGroup | None = None

    def __len__(self) -> int:
        """How many peers there are, including those that are not connected yet."""
        return len(self._places)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run peers inside the block; at its end the remaining ones are closed."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            peer_tasks: list[asyncio.Task[None]] = []
            self._running = peer_tasks
            try:
                yield
            finally:
                self._tasks = None
                for task in peer_tasks:
                    task.cancel()

    async def open(
        self,
        server_session: ServerSession,
        role: Role,
        offer: Offer,
        preferences: MediaPreferences,
        peer_kind: PeerKind,
        address: str,
    ) -> WebRtcPeer:
        """Answer an offer from `address` with a peer that waits for its connection.

        If this fails, nothing is left.

        Raises:
            HttpRefusedError: the offer cannot be answered, or there are too many peers.
        """
        if self._tasks is None or self._context.draining:
            raise shutting_down()
        accounts = self._context.store.address_accounts(address)
        place = _Place(server_session.id, role, accounts, self._leave)
        self._enter(place)
        try:
            configuration = self.servers.configuration()
            reach = Reach(address, own_addresses(), self._budget)
            negotiated = await negotiate(offer, preferences, configuration, self._options, reach)
            if self._tasks is None or place.is_lost:
                await negotiated.connection.close()
            if self._tasks is None:
                raise asyncio.CancelledError
            if place.is_lost:
                raise _too_many("peers", self._places.limit)
        except BaseException:
            self._leave(place)
            raise
        name = secrets.token_urlsafe(16)
        context = self._context
        peer = WebRtcPeer(
            name, server_session, role, negotiated, context, peer_kind, configuration, accounts
        )
        place.peer = self._peers[name] = peer
        task = self._tasks.create_task(self._host(peer, place), name=f"peer {name}")
        self._running.append(task)
        task.add_done_callback(self._running.remove)
        return peer

    def find(self, session: str, peer: str) -> WebRtcPeer:
        """Return a peer of a session.

        Raises:
            HttpRefusedError: there is no such peer; 410 names why it has ended.
        """
        found = self._peers.get(peer)
        of_session, ended = self._endings.get(peer, (None, None))
        if ended is not None and of_session == session:
            raise HttpRefusedError(HTTPStatus.GONE, ended.reason, ended.message)
        if found is None or found.session != session:
            raise HttpRefusedError(HTTPStatus.NOT_FOUND, "no_such_peer", "there is no such peer")
        return found

    async def _host(self, peer: WebRtcPeer, place: _Place) -> None:
        try:
            with self._context.socket():
                await peer.run()
        finally:
            del self._peers[peer.id]
            if peer.ended is not None:
                self._endings[peer.id] = peer.session, peer.ended
            if len(self._endings) > ENDINGS:
                del self._endings[next(iter(self._endings))]
            self._leave(place)

    def _enter(self, place: _Place) -> None:
        """Take a place of the session and of the server.

        Raises:
            HttpRefusedError: there is no place.
        """
        most = self._options.peers_per_session
        if place.role is Role.DRIVER:
            most_drivers = max(DRIVERS, most - len(self._viewers[place.session]))
            is_in = self._drivers[place.session] < most_drivers
            self._drivers[place.session] += is_in
        else:
            is_in = self._viewers[place.session].take(place.holder)
        if is_in and not self._places.take(place.holder):
            self._leave(place)
            raise _too_many("peers", self._places.limit)
        if not is_in:
            self._forget_if_empty(place.session)
            raise _too_many("peers_per_session", most)
        self._context.metrics.peers.set(len(self))

    def _leave(self, place: _Place) -> None:
        """Free a place. Idempotent."""
        session = place.session
        if place.is_over:
            return
        place.is_over = True
        self._places.give_back(place.holder)
        if place.role is Role.DRIVER:
            self._drivers[session] -= 1
        else:
            self._viewers[session].give_back(place.holder)
        self._forget_if_empty(session)
        self._context.metrics.peers.set(len(self))

    def _forget_if_empty(self, session: str) -> None:
        if not self._drivers[session] and not self._viewers[session]:
            del self._drivers[session], self._viewers[session]


def _too_many(setting: str, limit: int) -> HttpRefusedError:
    text = f"there may be at most {limit} peers ({setting})"
    return HttpRefusedError(
        HTTPStatus.TOO_MANY_REQUESTS, "too_many_peers", text, retry_after_s=RETRY_S
    )
