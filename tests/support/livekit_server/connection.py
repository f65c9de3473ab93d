"""One of a participant's two peer connections, and candidates that come before it is ready."""

import asyncio
import json

from aiortc import RTCBundlePolicy, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.rtcicetransport import RTCIceCandidate
from aiortc.sdp import candidate_from_sdp

UP_LIMIT_S = 30.0


class Connection:
    """A peer connection of aiortc, which candidates may reach early.

    What is negotiated while it connects never begins to flow, in aiortc 1.16; so a second
    description waits until the first has led to a connection.
    """

    def __init__(self) -> None:
        # Sections beyond the first of a kind stay on a dead transport under any other policy.
        configuration = RTCConfiguration(iceServers=[], bundlePolicy=RTCBundlePolicy.MAX_BUNDLE)
        self.inner = RTCPeerConnection(configuration)
        self._early: list[RTCIceCandidate] = []
        self._settled = asyncio.Event()
        self.inner.on("connectionstatechange", self._on_state)

    @property
    def is_up(self) -> bool:
        """Whether something can be sent over it."""
        return self.inner.connectionState == "connected"

    async def settled(self) -> None:
        """Return once it is connected, or has failed.

        Raises:
            TimeoutError: it took too long.
        """
        async with asyncio.timeout(UP_LIMIT_S):
            await self._settled.wait()

    async def describe_far(self, sdp: str, kind: str) -> None:
        """Take the far side's description, and the candidates that came before it."""
        await self.inner.setRemoteDescription(RTCSessionDescription(sdp, kind))
        early, self._early = self._early, []
        for candidate in early:
            await self.inner.addIceCandidate(candidate)

    async def offer(self) -> str:
        """Return what this side offers."""
        await self.inner.setLocalDescription(await self.inner.createOffer())
        return self.inner.localDescription.sdp

    async def answer(self) -> str:
        """Return this side's answer to an offer that was taken."""
        await self.inner.setLocalDescription(await self.inner.createAnswer())
        return self.inner.localDescription.sdp

    async def trickle(self, candidate_json: str) -> None:
        """Take a candidate of the far side's, in the form of browsers' `toJSON`."""
        said = json.loads(candidate_json)
        if not said.get("candidate") or " tcp " in said["candidate"].lower():
            return
        candidate = candidate_from_sdp(said["candidate"].split(":", 1)[1])
        candidate.sdpMid, candidate.sdpMLineIndex = said.get("sdpMid"), said.get("sdpMLineIndex")
        if self.inner.remoteDescription is None:
            self._early.append(candidate)
        else:
            await self.inner.addIceCandidate(candidate)

    def _on_state(self) -> None:
        if self.inner.connectionState not in ("new", "connecting"):
            self._settled.set()

    async def close(self) -> None:
        """Close it; again changes nothing."""
        await self.inner.close()
