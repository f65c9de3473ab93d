"""What happens to the packets of one direction of a line: when each comes out, if it does."""

import heapq
import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from threading import Lock
from typing import TypedDict, Unpack

MOST_WAITING = 100_000
"""Packets on one direction; more are dropped, as by a line without a rate and with a long delay."""


@dataclass(frozen=True, slots=True)
class PathSettings:
    """One direction of a line.

    Attributes:
        delay_ms: from end to end.
        jitter_ms: each packet's delay differs by up to this, either way, evenly distributed.
        loss: share of the packets that are lost at random, 0 to 1.
        rate_kbit: what fits through in a second, in kilobits; 0 for no limit.
        queue_ms: packets that would wait longer than this for the rate are dropped.
        reorder: whether jitter lets packets overtake each other; otherwise they keep their order.

    Raises:
        ValueError: a value is out of its range.
    """

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss: float = 0.0
    rate_kbit: float = 0.0
    queue_ms: float = 300.0
    reorder: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            most = 1.0 if field.name == "loss" else math.inf
            if not (0 <= value <= most and math.isfinite(value)):
                raise ValueError(f"{field.name} is {value}: not a number from 0 to {most:g}")


class PathChanges(TypedDict, total=False):
    """Some of the fields of `PathSettings`, to change."""

    delay_ms: float
    jitter_ms: float
    loss: float
    rate_kbit: float
    queue_ms: float
    reorder: bool


@dataclass(frozen=True, slots=True)
class PathCounts:
    """What one direction has carried and dropped until now."""

    carried: int = 0
    carried_bytes: int = 0
    dropped: int = 0


@dataclass(order=True, slots=True)
class _Packet:
    out_s: float
    number: int
    sent_s: float
    jitter: float
    data: bytes


class Path:
    """One direction of a line. Any thread may change it while another one carries.

    Args:
        settings: at the start.
        seed: of losses and jitter; None for another one each time.
    """

    def __init__(self, settings: PathSettings, seed: int | None = None) -> None:
        self._settings, self._counts = settings, PathCounts()
        self._random = random.Random(seed)
        self._numbers = itertools.count()
        self._waiting: list[_Packet] = []
        self._free_s = self._newest_s = -math.inf
        self._lock = Lock()

    @property
    def settings(self) -> PathSettings:
        """The settings as they are now."""
        return self._settings

    @property
    def counts(self) -> PathCounts:
        """What it has carried and dropped until now."""
        return self._counts

    @property
    def next_s(self) -> float:
        """When the next packet comes out; infinity when none is on its way."""
        with self._lock:
            return self._waiting[0].out_s if self._waiting else math.inf

    def change(self, **changes: Unpack[PathChanges]) -> None:
        """Change some settings at once: packets on their way wait for the new delay at most.

        Raises:
            ValueError: a value is out of its range; nothing is changed.
        """
        self.become(replace(self._settings, **changes))

    def become(self, settings: PathSettings) -> None:
        """Take other settings at once; see `change`."""
        with self._lock:
            self._settings = settings
            self._free_s = self._newest_s = -math.inf
            for packet in sorted(self._waiting, key=lambda packet: packet.number):
                at_most_s = self._ordered(packet.sent_s + self._delay_s(packet.jitter))
                packet.out_s = min(packet.out_s, at_most_s)
                self._newest_s = max(self._newest_s, packet.out_s)
            heapq.heapify(self._waiting)

    def enter(self, data: bytes, now_s: float) -> None:
        """Send a packet at this time of a clock that never goes back."""
        with self._lock:
            settings = self._settings
            begin_s = max(now_s, self._free_s)
            if (
                self._random.random() < settings.loss
                or len(self._waiting) >= MOST_WAITING
                or (settings.rate_kbit and (begin_s - now_s) * 1000 > settings.queue_ms)
            ):
                self._count(dropped=1)
                return
            sent_s = now_s
            if settings.rate_kbit:
                sent_s = self._free_s = begin_s + len(data) * 8 / settings.rate_kbit / 1000
            jitter = self._random.uniform(-1, 1)
            out_s = self._ordered(sent_s + self._delay_s(jitter))
            self._newest_s = max(self._newest_s, out_s)
            heapq.heappush(self._waiting, _Packet(out_s, next(self._numbers), sent_s, jitter, data))

    def due(self, now_s: float) -> Iterator[bytes]:
        """Yield the packets that have come out by this time."""
        while True:
            with self._lock:
                if not self._waiting or self._waiting[0].out_s > now_s:
                    return
                data = heapq.heappop(self._waiting).data
                self._count(carried=1, carried_bytes=len(data))
            yield data

    def _delay_s(self, jitter: float) -> float:
        settings = self._settings
        return max(0.0, settings.delay_ms + jitter * settings.jitter_ms) / 1000

    def _ordered(self, out_s: float) -> float:
        return out_s if self._settings.reorder else max(out_s, self._newest_s)

    def _count(self, carried: int = 0, carried_bytes: int = 0, dropped: int = 0) -> None:
        counts = self._counts
        self._counts = PathCounts(
            counts.carried + carried,
            counts.carried_bytes + carried_bytes,
            counts.dropped + dropped,
        )
