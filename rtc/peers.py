"""All WebRTC peers of a server: bounded, found by session and id, run in one TaskGroup."""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus

from reverie.rtc.edge import Edge
from reverie.rtc.errors import HttpRefusedError
from reverie.rtc.ice import IceServers
from reverie.rtc.negotiation import Wishes, negotiate
from reverie.rtc.offer import Offer
from reverie.rtc.webrtc import Manners, WebRtcPeer
from reverie.sessions import HostedSession, Role

RETRY_S = 5.0


class PeerRoom:
    """Makes peers and lets them live. For one event loop."""

    def __init__(self, edge: Edge) -> None:
        """Hold nobody yet; peers need `running`."""
        self.servers = IceServers(edge.options.rtc)
        self._edge = edge
        self._options = edge.options.rtc
        self._peers: dict[str, WebRtcPeer] = {}
        self._places: Counter[str] = Counter()  # taken, by session
        self._tasks: asyncio.TaskGroup | None = None

    def __len__(self) -> int:
        """How many peers there are, those included that do not stand yet."""
        return self._places.total()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let peers live inside the block; what is left of them at its end is closed."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            living: list[asyncio.Task[None]] = []
            self._living = living
            try:
                yield
            finally:
                self._tasks = None
                for task in living:
                    task.cancel()

    async def open(
        self, hosted: HostedSession, role: Role, offer: Offer, wishes: Wishes, manners: Manners
    ) -> WebRtcPeer:
        """Answer an offer with a peer that waits to be connected to. Else nothing is left.

        Raises:
            HttpRefusedError: the offer cannot be answered, or there are too many peers.
        """
        if self._tasks is None or self._edge.draining:
            text = "the server is leaving"
            raise HttpRefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE, "shutting_down", text, retry_after_s=RETRY_S
            )
        with self._place(hosted.id):
            configuration = self.servers.configuration()
            negotiated = await negotiate(offer, wishes, configuration, self._options)
            if self._tasks is None:
                await negotiated.connection.close()
                raise asyncio.CancelledError
            name = secrets.token_urlsafe(12)
            peer = WebRtcPeer(name, hosted, role, negotiated, self._edge, manners, configuration)
            self._peers[name] = peer
            self._places[hosted.id] += 1  # the peer's own, until it is over
            task = self._tasks.create_task(self._host(peer), name=f"peer {name}")
            self._living.append(task)
            task.add_done_callback(self._living.remove)
        return peer

    def find(self, session: str, peer: str) -> WebRtcPeer:
        """Return a peer of a session.

        Raises:
            HttpRefusedError: there is none of that id, or not any more.
        """
        found = self._peers.get(peer)
        if found is None or found.session != session:
            raise HttpRefusedError(HTTPStatus.NOT_FOUND, "no_such_peer", "no such peer is here")
        return found

    async def _host(self, peer: WebRtcPeer) -> None:
        try:
            with self._edge.socket():
                await peer.run()
        finally:
            del self._peers[peer.id]
            self._leave(peer.session)

    @contextmanager
    def _place(self, session: str) -> Iterator[None]:
        """Hold a place while an offer is being answered."""
        here, most = self._places[session], self._options.peers_per_session
        if here >= most or len(self) >= self._options.peers:
            name = "peers_per_session" if here >= most else "peers"
            text = f"there are {here if here >= most else len(self)} peers ({name})"
            raise HttpRefusedError(
                HTTPStatus.TOO_MANY_REQUESTS, "too_many_peers", text, retry_after_s=RETRY_S
            )
        self._places[session] += 1
        self._edge.metrics.peers.set(len(self))
        try:
            yield
        finally:
            self._leave(session)

    def _leave(self, session: str) -> None:
        self._places[session] -= 1
        if not self._places[session]:
            del self._places[session]
        self._edge.metrics.peers.set(len(self))
