"""Prometheus metrics of one server, in their own registry (`/metrics`)."""

import asyncio

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

_DELAYS_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_PROBE_S = 0.25
_FRACTIONS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class Metrics:
    """Counters of one server; label values come from fixed sets, never from a client."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.attached = Gauge(
            "reverie_attached", "Attachments open now.", ["role"], registry=self.registry
        )
        self.sessions = Gauge("reverie_sessions", "Sessions open now.", registry=self.registry)
        self.ready = Gauge("reverie_ready", "1 when every model is warm.", registry=self.registry)
        self.slots = self._of_model("reverie_slots", "Sessions that fit at once.")
        self.busy = self._of_model("reverie_slots_busy", "Slots that are taken.")
        self.waiting = self._of_model("reverie_waiting", "Sessions in the wait queue.")
        self.workers_lost = self._of_model("reverie_workers_lost", "Workers lost so far.")
        self.created = Counter(
            "reverie_sessions_created", "Sessions opened.", registry=self.registry
        )
        self.commands = Counter(
            "reverie_commands", "Commands by type.", ["type"], registry=self.registry
        )
        self.refused = Counter(
            "reverie_refused", "Refusals by place.", ["where"], registry=self.registry
        )
        self.sent_bytes = Counter(
            "reverie_sent_bytes", "Bytes of events and media sent.", registry=self.registry
        )
        self.frames = Counter("reverie_frames", "Frames sent.", registry=self.registry)
        self.dropped = Counter(
            "reverie_frames_dropped", "Frames that slow viewers missed.", registry=self.registry
        )
        self.ended = Counter(
            "reverie_attachments_ended",
            "Attachments ended, by reason.",
            ["reason"],
            registry=self.registry,
        )
        self.peers = Gauge(
            "reverie_peers",
            "WebRTC peers, including those that are not connected yet.",
            registry=self.registry,
        )
        self.peers_connected = Counter(
            "reverie_peers_connected", "WebRTC peers that were connected.", registry=self.registry
        )
        self.restarts = Counter("reverie_ice_restarts", "ICE restarts.", registry=self.registry)
        self.key_requests = Counter(
            "reverie_key_requests", "Key frames that receivers asked for.", registry=self.registry
        )
        self.packet_loss = Histogram(
            "reverie_packet_loss_ratio",
            "Fraction of RTP packets lost, as receivers report it.",
            buckets=_FRACTIONS,
            registry=self.registry,
        )
        self.round_trip = Histogram(
            "reverie_round_trip_seconds",
            "Round trip to WebRTC receivers.",
            buckets=_DELAYS_S,
            registry=self.registry,
        )
        self.loop_delay = Histogram(
            "reverie_loop_delay_seconds",
            "How late the event loop runs what is due.",
            buckets=_DELAYS_S,
            registry=self.registry,
        )

    def _of_model(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, ["model"], registry=self.registry)

    def page(self) -> tuple[bytes, str]:
        """Return the text for a scraper, and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_PLAIN_0_0_4

    async def watch_loop(self) -> None:
        """Measure the event loop's delay until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _PROBE_S
            await asyncio.sleep(_PROBE_S)
            self.loop_delay.observe(max(0.0, loop.time() - due))
