"""The rows of `reverie bench --line`: which model, over which line, and what each must reach."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from reverie.bench.line import PathSettings
from reverie.bench.over_line.toy_models import BUSY24, LONG24, SLOW24, STEP12, STEP24, STEP60MS, Toy

About = Literal["rate", "act", "shown", "congested", "starved"]
"""What a row is about; see `goals.py`."""

Act = Literal["now", "after"]
Transport = Literal["websocket", "webrtc"]
TRANSPORTS: tuple[Transport, ...] = ("websocket", "webrtc")


@dataclass(frozen=True, slots=True)
class Row:
    """One line, model and transport.

    Attributes:
        about: which goals it has.
        round_trip_ms: of the line; half of it is the delay of each direction.
        jitter_ms: how much longer or shorter a round trip can be.
        loss: share of the packets lost, in each direction.
        rate_kbit: of the downlink; 0 for no limit.
        act: whether a key takes back what is unseen, or acts after it.
        with_bare: whether the bare loop is measured as well.
    """

    about: About
    transport: Transport
    toy: Toy
    round_trip_ms: float = 0.0
    jitter_ms: float = 0.0
    loss: float = 0.0
    rate_kbit: float = 0.0
    act: Act = "after"
    with_bare: bool = True

    @property
    def line(self) -> str:
        """The line in words."""
        parts = [f"{self.round_trip_ms:g} ms"]
        parts += [f"jitter {self.jitter_ms:g} ms"] if self.jitter_ms else []
        parts += [f"loss {self.loss:.0%}"] if self.loss else []
        parts += [f"{self.rate_kbit:g} kbit/s"] if self.rate_kbit else []
        return ", ".join(parts)

    @property
    def title(self) -> str:
        """The row in words."""
        return f"{self.model}, {self.transport}, {self.line}"

    @property
    def model(self) -> str:
        """The model, and how its keys act."""
        return self.toy.name if self.act == "after" else f"{self.toy.name}, act: now"

    @property
    def downlink(self) -> PathSettings:
        """The direction from server to client."""
        return replace(self.uplink, rate_kbit=self.rate_kbit)

    @property
    def uplink(self) -> PathSettings:
        """The direction from client to server."""
        return PathSettings(
            delay_ms=self.round_trip_ms / 2, jitter_ms=self.jitter_ms / 2, loss=self.loss
        )


@dataclass(frozen=True, slots=True)
class LineOptions:
    """What to measure, and how long.

    Attributes:
        rounds: turns of each side of each row.
        settle_s: time after the first picture of each turn that does not count.
        seconds: of each half of a turn, without keys and with.
    """

    rounds: int = 1
    settle_s: float = 3.0
    seconds: float = 8.0
    rows: tuple[Row, ...] = field(default_factory=lambda: tuple(_full()))

    @classmethod
    def chosen(cls, *, quick: bool) -> "LineOptions":
        """Return the options for a run of 25 minutes, or of under four."""
        return cls(1, 2.0, 3.0, tuple(_quick())) if quick else cls()

    @property
    def total_s(self) -> float:
        """The duration without the start of processes."""
        turns = sum(1 + row.with_bare for row in self.rows) * self.rounds
        return turns * (self.settle_s + 2 * self.seconds)


def _full() -> Iterator[Row]:
    for transport in TRANSPORTS:
        for toy in (STEP12, STEP24):
            for round_trip_ms in (0.0, 50.0, 100.0, 200.0, 300.0):
                yield Row("rate", transport, toy, round_trip_ms)
                yield Row("rate", transport, toy, round_trip_ms, jitter_ms=30.0, loss=0.02)
    for transport in TRANSPORTS:
        for toy in (SLOW24, STEP60MS):
            yield Row("shown", transport, toy)
    yield from _acts()
    yield from _narrow()


def _quick() -> Iterator[Row]:
    for transport in TRANSPORTS:
        yield Row("rate", transport, STEP24, with_bare=False)
        yield Row("rate", transport, STEP24, 200.0)
        yield Row("rate", transport, STEP24, 100.0, jitter_ms=30.0, loss=0.02, with_bare=False)
        yield Row("shown", transport, SLOW24)
    yield from (row for row in _acts() if row.transport == "websocket")
    yield from _narrow()


def _acts() -> Iterator[Row]:
    for transport in TRANSPORTS:
        for act in ("after", "now"):
            yield Row("act", transport, LONG24, 100.0, act=act, with_bare=False)


def _narrow() -> Iterator[Row]:
    yield Row("congested", "websocket", BUSY24, 50.0, with_bare=False)
    yield Row("congested", "websocket", BUSY24, 50.0, rate_kbit=500.0)
    yield Row("starved", "webrtc", STEP24, 50.0, loss=0.3, rate_kbit=300.0)
