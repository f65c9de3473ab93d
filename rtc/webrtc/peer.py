"""One WebRTC peer of a session: from its answered offer to its end.

    offer answered -> connected (`events` open) -> attached -> running -> bye, closed

Nothing of the session is touched before the peer is connected. However it ends, `run` detaches,
tells the peer why if it can, and closes the connection.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus

from aiortc import RTCConfiguration, RTCIceCandidate

from reverie.gpu_pool.wire.shares import Accounts
from reverie.media import MonotonicClock
from reverie.rtc.app_context import AppContext
from reverie.rtc.webrtc.aiortc_seams import within_ports
from reverie.rtc.webrtc.data_channels import EventsChannel, PeerChannels
from reverie.rtc.webrtc.ice import IceEnd
from reverie.rtc.webrtc.media_in import feed
from reverie.rtc.webrtc.media_out import MediaOut
from reverie.rtc.webrtc.negotiation import NegotiatedPeer, no_candidates
from reverie.rtc.webrtc.peer_conversation import PeerConversation
from reverie.rtc.wire.errors import (
    INTERNAL_ERROR,
    HttpRefusedError,
    PeerEndedError,
    PeerLeftError,
    first_of,
)
from reverie.rtc.wire.framing import CloseCode, close_code, encode_text
from reverie.sessions import Role, ServerSession
from reverie.sessions.protocol.errors import AttachmentEndedError
from reverie.sessions.protocol.events import Error

logger = logging.getLogger(__name__)

FAREWELL_S = 1.0
"""Time for the peer to receive the reason, and to close the connection itself."""

_CHECK_S = 0.25
NO_PATH = (
    "no network path to the server was found (ICE): a firewall may block UDP; use WebSocket, "
    "or have the operator name a TURN server (server.rtc.turn_urls)"
)

SUSPENDED_S = 1.0
"""After this process was suspended for longer, silence is not the fault of its peers."""


@dataclass(frozen=True, slots=True)
class PeerKind:
    """The kind of a peer.

    Attributes:
        talks: it has an `events` channel, which is also its heartbeat.
        watches: it is attached, and counts as a viewer.
    """

    talks: bool = True
    watches: bool = True


class WebRtcPeer:
    """One peer; `run` serves it until it ends."""

    def __init__(
        self,
        peer: str,
        server_session: ServerSession,
        role: Role,
        negotiated: NegotiatedPeer,
        context: AppContext,
        peer_kind: PeerKind,
        configuration: RTCConfiguration,
        accounts: Accounts,
    ) -> None:
        """Handle events of the connection; nothing of the session is touched yet."""
        self.id = peer
        self.session = server_session.id
        self.role = role
        self.negotiated = negotiated
        self.paths = 1  # paths so far; each ICE restart adds one
        self.ended: PeerEndedError | None = None  # why it ended, unless the peer asked for it
        self._server_session = server_session
        self._context = context
        self._options = context.options.rtc
        self._peer_kind = peer_kind
        self._configuration = configuration
        self._tasks: asyncio.TaskGroup | None = None  # while the peer is connected
        self._connection = negotiated.connection
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()  # the connection, or its channels
        self._leaving = False
        self._evicted = False
        self._now_us = MonotonicClock().now_us
        self._media = MediaOut(negotiated, self._now_us, self._options, context.metrics)
        self._channels = PeerChannels(
            self._options.inbox_messages, self._loop.time, self._changed.set
        )
        self._conversation = PeerConversation(
            context, server_session, self._media, self._channels, accounts
        )
        self._connection.on("connectionstatechange", self._changed.set)
        if peer_kind.talks:
            self._connection.on("datachannel", self._channels.opened)

    @property
    def state(self) -> str:
        """The state of the connection, in the words of the W3C (`RTCPeerConnectionState`)."""
        return str(self._connection.connectionState)

    async def run(self) -> None:
        """Serve the peer until either side ends it. When cancelled, close the connection."""
        code, reason, told = int(CloseCode.INTERNAL), "internal_error", None
        try:
            await self._serve()
        except AttachmentEndedError as error:
            code, reason = close_code(error.reason), error.reason
        except PeerEndedError as error:
            code, reason, self.ended = error.code, error.reason, error
            told = Error(code=reason, message=error.message)
        except PeerLeftError:
            code, reason = 0, "peer"
        except Exception:
            logger.exception("peer %s of session %s failed", self.id, self.session)
            told = Error(code=reason, message=INTERNAL_ERROR)
        finally:
            self._tasks = None
            self._context.metrics.ended.labels(reason).inc()
            logger.info("peer %s of session %s has ended: %s", self.id, self.session, reason)
            await self._close(code, reason, told)

    def leave(self) -> None:
        """End the peer at its own request."""
        self._leaving = True
        self._changed.set()

    def evict(self) -> None:
        """End the peer, because there are too many and other addresses hold fewer."""
        self._evicted = True
        self._changed.set()

    async def add_candidates(self, candidates: Sequence[RTCIceCandidate]) -> None:
        """Try more candidates of the peer. Candidates that come too late are ignored."""
        await self.negotiated.route.add_candidates(candidates)

    async def restart(self, remote: IceEnd) -> IceEnd:
        """Prepare a new path to the peer, and return this end of it; the old one stays meanwhile.

        Raises:
            HttpRefusedError: the peer is not connected, or no candidate was gathered in time.
        """
        if self._tasks is None or self._connection.connectionState != "connected":
            text = "ICE restart needs a connected peer"
            raise HttpRefusedError(HTTPStatus.CONFLICT, "not_connected", text)
        try:
            with within_ports(self._options.ports):
                async with asyncio.timeout(self._options.gather_timeout_s):
                    end = await self.negotiated.route.prepare(self._configuration, remote)
        except TimeoutError:
            raise no_candidates() from None
        self.paths += 1
        self._context.metrics.restarts.inc()
        self._tasks.create_task(self._switch_path(), name=f"peer {self.id} path")
        return end

    async def _switch_path(self) -> None:
        route = self.negotiated.route
        try:
            async with asyncio.timeout(self._options.connect_timeout_s):
                worked = await route.switch()
        except TimeoutError:
            await route.forget()
            worked = False
        logger.info("peer %s: the new path %s", self.id, "works" if worked else "does not work")
        events = self._channels.events
        if not worked and events is not None:
            told = Error(code="ice_failed", message=NO_PATH).model_copy(update=self._stamp())
            with suppress(PeerLeftError):
                await events.send(encode_text(told))

    async def _serve(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._watch(), name=f"peer {self.id} connection")
                await self._wait_connected()
                self.negotiated.route.confirm()
                self._context.metrics.peers_connected.inc()
                self._tasks = tasks
                if self._peer_kind.watches:
                    tasks.create_task(
                        self._conversation.run(self.role), name=f"peer {self.id} talk"
                    )
                else:
                    tasks.create_task(self._until_over(), name=f"peer {self.id} session")
                for stream, transceiver in self.negotiated.inputs.items():
                    feeding = feed(self._server_session, stream, transceiver.receiver.track)
                    tasks.create_task(feeding, name=f"peer {self.id} feeds {stream}")
        except ExceptionGroup as group:
            raise first_of(group) from group

    async def _wait_connected(self) -> None:
        """Return once the peer is connected, with its channel; this has a time limit."""
        limit_s = self._options.connect_timeout_s
        try:
            async with self._context.handshake(limit_s):
                while self._connection.connectionState != "connected" or (
                    self._peer_kind.talks and self._channels.events is None
                ):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            if self._context.draining:
                raise AttachmentEndedError("shutdown") from None
            text = f"no connection within {limit_s:g} s (connect_timeout_s)"
            if self._connection.iceConnectionState != "completed":
                text = f"{text}: {NO_PATH}"
            raise PeerEndedError(CloseCode.TIMEOUT, "connect_timeout", text) from None

    async def _watch(self) -> None:
        """Raise when the peer has closed, is silent, asks to end, or its sender has failed."""
        checked_s = self._loop.time()
        while True:
            now_s = self._loop.time()
            if self._channels.events is not None and now_s - checked_s > SUSPENDED_S:
                self._channels.events.heard_s += now_s - checked_s
            checked_s = now_s
            self._check()
            self._media.check(self._now_us() / 1e6)
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_CHECK_S):
                    await self._changed.wait()

    def _check(self) -> None:
        if self._conversation.attachment is None and self._server_session.state.over:
            raise AttachmentEndedError(self._server_session.state.reason or "closed")
        if self._connection.connectionState == "failed" and not self._leaving:
            raise PeerEndedError(CloseCode.TIMEOUT, "ice_failed", NO_PATH)
        if self._leaving or self._connection.connectionState == "closed":
            raise PeerLeftError(1006)
        if self._evicted:
            text = "other clients need a place, and this address holds more peers than theirs"
            raise PeerEndedError(CloseCode.TOO_MANY, "too_many_peers", text)
        events, limit_s = self._channels.events, self._options.heartbeat_s
        if events is None:
            return
        if self._loop.time() - events.heard_s >= limit_s:
            text = f"the client sent nothing for {limit_s:g} s (heartbeat_s)"
            raise PeerEndedError(CloseCode.TIMEOUT, "heartbeat", text)
        if events.overflowed:
            text = f"more than {self._options.inbox_messages} messages wait (inbox_messages)"
            raise PeerEndedError(CloseCode.SLOW_VIEWER, "slow_viewer", text)

    async def _until_over(self) -> None:
        await self._server_session.ended()
        raise AttachmentEndedError(self._server_session.state.reason or "closed")

    async def _close(self, code: int, reason: str, told: Error | None) -> None:
        """Tell the peer why, give it a moment to close, and close the connection."""
        try:
            async with asyncio.timeout(self._options.close_timeout_s):
                if code and self._channels.events is not None:
                    await self._say_bye(self._channels.events, code, reason, told)
                await self.negotiated.route.forget()
                await self._connection.close()
        except TimeoutError:
            logger.warning("peer %s was not closed in time", self.id)

    async def _say_bye(
        self, events: EventsChannel, code: int, reason: str, told: Error | None
    ) -> None:
        with suppress(PeerLeftError, TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                if told is not None:
                    await events.send(encode_text(told.model_copy(update=self._stamp())))
                await events.send(json.dumps({"type": "bye", "code": code, "reason": reason}))
                while self._connection.connectionState == "connected" and not events.closed:
                    self._changed.clear()
                    await self._changed.wait()

    def _stamp(self) -> dict[str, object]:
        sequence = (
            self._conversation.attachment.outbox.sequence if self._conversation.attachment else 0
        )
        return {"session": self.session, "sequence": sequence, "time_us": self._now_us()}
