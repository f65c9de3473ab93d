"""A path to a peer that can be laid anew under a connection that stands (ICE restart, RFC 8839).

aiortc knows no restart. Here DTLS and all above it speak through a route, and a route can come to
lead elsewhere: the new path is tried while the old one carries on, and takes over once it works.
"""

import asyncio
from collections.abc import Sequence

from aiortc import RTCConfiguration, RTCIceCandidate, RTCIceGatherer, RTCIceTransport
from aiortc.rtcicetransport import RTCIceParameters

from reverie.rtc.webrtc.aiortc_seams import IcePath, lead_elsewhere, path_of, speak_through
from reverie.rtc.webrtc.candidates import CandidateFilter, Reach
from reverie.rtc.webrtc.ice import IceEnd


class IceRoute:
    """Where the datagrams of one transport go. Made before the transport connects."""

    def __init__(
        self,
        transport: RTCIceTransport,
        remote_ufrag: str,
        reach: Reach,
        candidates: CandidateFilter | None = None,
    ) -> None:
        """Lead where the transport leads by itself.

        Args:
            transport: whose datagrams.
            remote_ufrag: the peer's, of the transport's own path.
            reach: where the peer may be.
            candidates: has chosen those that the transport's own path was told already.
        """
        self._reach = reach
        self._candidates = candidates or CandidateFilter(reach)
        self.remote_ufrag = remote_ufrag
        self._transport = transport
        self._path = path_of(transport)
        self._next: IcePath | None = None
        self._laying = asyncio.Lock()
        speak_through(transport, self._receive, self._send)

    async def lay(self, configuration: RTCConfiguration, remote: IceEnd) -> IceEnd:
        """Gather for a new path to `remote`, which `take` then tries; it replaces one laid before.

        Returns:
            Our end of it.
        """
        async with self._laying:
            return await self._lay(configuration, remote)

    async def _lay(self, configuration: RTCConfiguration, remote: IceEnd) -> IceEnd:
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

    async def take(self) -> bool:
        """Try the path that was laid, and go on by it; tell whether it worked.

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
            return False  # another one was laid meanwhile
        self._next = None
        before, self._path = self._path, path
        lead_elsewhere(self._transport, path)
        self.confirm()
        await before.close()
        return True

    async def forget(self) -> None:
        """Give up the path that was laid and has not taken over."""
        path, self._next = self._next, None
        if path is not None:
            await path.close()

    async def add_candidates(self, candidates: Sequence[RTCIceCandidate]) -> None:
        """Try to reach the other end there as well, by the newest path.

        Not at too many places (RFC 8445, section 19.5.1), nor where it cannot be.
        """
        path = self._next or self._path
        for candidate in candidates:
            if self._candidates.takes(candidate):
                await path.add_candidate(candidate)

    def pace(self) -> None:
        """Bound the checks of the transport's own path, once this end has gathered for it."""
        self._path.pace_checks(self._reach.budget.may_check)

    def confirm(self) -> None:
        """Note that the peer has connected, and where from."""
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
