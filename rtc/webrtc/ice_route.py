"""A path to a peer that can be replaced under an open connection (ICE restart, RFC 8839).

aiortc has no ICE restart. Here DTLS and the layers above it send through a route, and a route can
switch its path: the new path is tried while the old one stays in use, and then replaces it.
"""

import asyncio
from collections.abc import Sequence

from aiortc import RTCConfiguration, RTCIceCandidate, RTCIceGatherer, RTCIceTransport
from aiortc.rtcicetransport import RTCIceParameters

from reverie.rtc.webrtc.aiortc_seams import IcePath, path_of, route_through, switch_path
from reverie.rtc.webrtc.candidates import CandidateFilter, Reach
from reverie.rtc.webrtc.ice import IceEnd


class IceRoute:
    """The current path of one transport. Created before the transport connects."""

    def __init__(
        self,
        transport: RTCIceTransport,
        remote_ufrag: str,
        reach: Reach,
        candidates: CandidateFilter | None = None,
    ) -> None:
        """Begin with the transport's own path.

        Args:
            transport: the transport whose datagrams are routed.
            remote_ufrag: the peer's, of the transport's own path.
            reach: which addresses the peer may have.
            candidates: the filter that chose the candidates of the transport's own path.
        """
        self._reach = reach
        self._candidates = candidates or CandidateFilter(reach)
        self.remote_ufrag = remote_ufrag
        self._transport = transport
        self._path = path_of(transport)
        self._next: IcePath | None = None
        self._preparing = asyncio.Lock()
        route_through(transport, self._receive, self._send)

    async def prepare(self, configuration: RTCConfiguration, remote: IceEnd) -> IceEnd:
        """Gather candidates for a new path to `remote`, which `switch` then tries.

        It replaces an earlier new path that has not taken over.

        Returns:
            This server's end of the path.
        """
        async with self._preparing:
            return await self._prepare(configuration, remote)

    async def _prepare(self, configuration: RTCConfiguration, remote: IceEnd) -> IceEnd:
        await self.forget()
        self._candidates = CandidateFilter(self._reach)
        gatherer = RTCIceGatherer(configuration.iceServers, configuration.iceTransportPolicy)
        path = path_of(gatherer)
        path.prepare(
            controlling=self._path.controlling, ufrag=remote.ufrag, password=remote.password
        )
        self._next = path
        try:
            await gatherer.gather()
            path.pace_checks(self._reach.budget.may_check)
            await self.add_candidates(remote.candidates)
        except BaseException:
            await self.forget()
            raise
        self.remote_ufrag = remote.ufrag
        own: RTCIceParameters = gatherer.getLocalParameters()
        candidates = tuple(gatherer.getLocalCandidates())
        return IceEnd(own.usernameFragment or "", own.password or "", candidates)

    async def switch(self) -> bool:
        """Try the new path and switch to it; tell whether it works.

        If it does not, the old one stays. Safe to cancel.
        """
        path = self._next
        if path is None:
            return False
        try:
            await path.connect()
        except ConnectionError:
            if self._next is path:
                await self.forget()
            return False
        if self._next is not path:
            return False  # another new path was prepared meanwhile
        self._next = None
        before, self._path = self._path, path
        switch_path(self._transport, path)
        self.confirm()
        await before.close()
        return True

    async def forget(self) -> None:
        """Close the new path, if there is one that has not taken over."""
        path, self._next = self._next, None
        if path is not None:
            await path.close()

    async def add_candidates(self, candidates: Sequence[RTCIceCandidate]) -> None:
        """Try more candidates of the peer, on the newest path.

        Only as many as RFC 8445, section 19.5.1, allows, and none that cannot be a peer's.
        """
        path = self._next or self._path
        for candidate in candidates:
            if self._candidates.takes(candidate):
                await path.add_candidate(candidate)

    def pace(self) -> None:
        """Limit the checks of the transport's own path, once its candidates are gathered."""
        self._path.pace_checks(self._reach.budget.may_check)

    def confirm(self) -> None:
        """Note that the peer has connected, and from which host."""
        if (host := self._path.remote_host) is not None:
            self._reach.budget.confirm(host)

    async def _receive(self) -> bytes:
        while True:
            path = self._path
            try:
                return await path.recv()
            except ConnectionError:
                if path is self._path:
                    raise

    async def _send(self, data: bytes) -> None:
        await self._path.send(data)
