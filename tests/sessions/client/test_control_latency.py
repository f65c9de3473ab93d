"""How long controls take to show, as a client measures it."""

from reverie.sessions.client.control_latency import KEPT, MOST_PENDING, LatencyMeter
from reverie.sessions.protocol.events import ControlApplied, ControlSuperseded, SessionInterrupted


def applied(control: str, pts_us: int) -> ControlApplied:
    return ControlApplied(control=control, step=0, chunk=0, pts_us=pts_us)


def test_nothing_is_known_before_the_first_control_has_shown() -> None:
    meter = LatencyMeter()
    meter.sent("c1", 0)
    meter.note(applied("c1", 100_000))
    meter.shown(100_000, 50_000)  # the frame before
    assert meter.latency is None


def test_a_control_is_measured_until_the_first_frame_that_shows_it() -> None:
    meter = LatencyMeter()
    meter.sent("c1", 10_000)
    meter.note(applied("c1", 100_000))
    meter.shown(140_000, 95_000)
    meter.shown(180_000, 135_000)
    assert meter.latency is not None
    assert (meter.latency.count, meter.latency.newest_ms) == (1, 85.0)


def test_the_figures_are_of_the_newest_controls() -> None:
    meter = LatencyMeter()
    for number in range(1, 2 * KEPT + 1):
        meter.sent(f"c{number}", 0)
        meter.note(applied(f"c{number}", 0))
        meter.shown(1, number * 1000)
    latency = meter.latency
    assert latency is not None
    assert latency.count == KEPT
    assert latency.newest_ms == 2 * KEPT
    assert latency.p50_ms == KEPT + 50
    assert latency.p95_ms == KEPT + 96


def test_controls_that_never_act_are_not_measured() -> None:
    meter = LatencyMeter()
    for control in ("c1", "c2", "c3"):
        meter.sent(control, 0)
    meter.note(ControlSuperseded(control="c1", by="c2"))
    meter.refused("c2")
    meter.note(applied("c1", 0))
    meter.note(applied("c2", 0))
    meter.note(applied("not mine", 0))
    meter.shown(1, 1000)
    assert meter.latency is None


def test_a_frame_that_was_taken_back_shows_nothing() -> None:
    meter = LatencyMeter()
    meter.sent("c1", 0)
    meter.note(applied("c1", 100))
    meter.note(
        SessionInterrupted(command="c9", reason="interrupt", chunk=0, seen_us=50, next_us=60)
    )
    meter.shown(200, 1000)
    assert meter.latency is None


def test_what_is_pending_is_bounded() -> None:
    meter = LatencyMeter()
    for number in range(MOST_PENDING + 1):
        meter.sent(f"c{number}", 0)
    for control in ("c0", "c1"):
        meter.note(applied(control, 0))
    meter.shown(1, 1000)
    assert meter.latency is not None
    assert meter.latency.count == 1
