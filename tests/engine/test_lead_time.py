"""The lead in time, on a clock of its own: the rate is kept, and hardly anything waits."""

import pytest
from lead_rig import MS, LeadRig, middle, steps

from reverie.engine.lead_time import LeadTime, LineTiming
from reverie.engine.pacing import PlayoutLead, SeenUntil
from reverie.models.contract.spec import Lead

TRIPS_MS = (0.0, 50.0, 100.0, 200.0, 300.0)


@pytest.mark.parametrize("jitter_ms", [0.0, 60.0])
@pytest.mark.parametrize("trip_ms", TRIPS_MS)
@pytest.mark.parametrize("rate_hz", [12.0, 24.0])
def test_the_rate_is_kept_on_any_line_and_hardly_anything_waits_at_the_viewer(
    rate_hz: float, trip_ms: float, jitter_ms: float
) -> None:
    rig = LeadRig(rate_hz, trip_ms=lambda _: trip_ms, jitter_ms=jitter_ms).run(12)
    assert rig.rate(3) >= 0.97 * rate_hz
    if trip_ms > 0:
        assert middle(rig.waits_ms(3)) <= 10 + jitter_ms / 2


@pytest.mark.parametrize("trip_ms", TRIPS_MS)
@pytest.mark.parametrize("rate_hz", [12.0, 24.0])
def test_the_rate_is_kept_for_a_viewer_who_does_not_tell_how_long_frames_had_waited(
    rate_hz: float, trip_ms: float
) -> None:
    rig = LeadRig(rate_hz, trip_ms=lambda _: trip_ms, tells=False).run(12)
    assert rig.rate(3) >= 0.97 * rate_hz
    if trip_ms > 0:
        assert middle(rig.waits_ms(3)) <= 20


def test_a_line_without_a_known_delay_gets_the_least_and_no_more() -> None:
    lead = PlayoutLead(Lead(2), frame_us=40, kept=8)
    for chunk in range(2):
        assert not lead.full(0)
        lead.put_out(chunk, 40, 0, end_us=40 * (chunk + 1))
    assert lead.full(10 * MS)
    assert lead.allowed_us == 0


def test_the_lead_follows_a_line_that_becomes_long_and_short_again_within_a_second() -> None:
    rig = LeadRig(trip_ms=steps((0, 20.0), (5, 400.0), (10, 20.0))).run(5)
    assert rig.lead.allowed_us <= 80 * MS
    rig.run(1.5)  # half a second is the news on its way
    assert rig.lead.allowed_us >= 400 * MS
    rig.run(3.5)
    assert rig.rate(7, 10) >= 0.97 * rig.rate_hz
    rig.run(1.5)
    assert rig.lead.allowed_us <= 80 * MS
    rig.run(3.5)
    assert rig.rate(12, 15) >= 0.97 * rig.rate_hz
    assert middle(rig.waits_ms(12)) <= 10


def test_on_a_line_that_becomes_short_no_picture_is_missing() -> None:
    rig = LeadRig(trip_ms=steps((0, 400.0), (5, 20.0))).run(8)
    assert rig.rate(5) >= 0.97 * rig.rate_hz


def test_a_viewer_who_acknowledges_nothing_stops_the_generation() -> None:
    rig = LeadRig(trip_ms=lambda _: 300.0, acknowledges=False).run(5)
    assert rig.chunks == 1
    assert rig.lead.full(rig.now_us)


def test_a_viewer_who_stops_acknowledging_stops_the_generation_within_the_bound() -> None:
    rig = LeadRig(trip_ms=lambda _: 300.0).run(5)
    rig.acknowledges = False
    rig.run(10)
    chunks = rig.chunks
    assert rig.most_unseen <= 500 * MS
    rig.run(10)
    assert rig.chunks == chunks


def test_the_lead_is_never_longer_than_the_program_declares() -> None:
    rig = LeadRig(trip_ms=lambda _: 900.0, bounds=Lead(1, 250)).run(10)
    assert rig.lead.allowed_us == 250 * MS
    assert rig.most_unseen <= 250 * MS + rig.frame_us
    assert rig.rate(4) > 3, "it goes on as far as the bound allows"


def test_no_more_is_unseen_than_can_be_taken_back() -> None:
    lead = PlayoutLead(Lead(1, 10_000), frame_us=40 * MS, kept=3)
    lead.put_out(0, 40 * MS, 0, end_us=40 * MS)
    lead.seen(0, 2000 * MS, line=LineTiming(2000 * MS), waited_us=0)
    for chunk in range(1, 4):
        assert not lead.full(2000 * MS)
        lead.put_out(chunk, 40 * MS, 2000 * MS, end_us=40 * MS * (chunk + 1))
    assert lead.full(2000 * MS)


def test_after_a_hundred_seconds_without_a_line_everything_is_as_before_within_two() -> None:
    rig = LeadRig(trip_ms=steps((0, 100.0), (5, None), (105, 100.0))).run(105)
    assert rig.most_unseen <= 300 * MS, "generation stopped"
    rig.run(8)
    assert rig.rate(108) >= 0.97 * rig.rate_hz
    assert middle(rig.waits_ms(108)) <= 20


@pytest.mark.parametrize("lie_us", [0, 10**12])
def test_a_viewer_who_lies_about_how_long_frames_had_waited_is_bounded(lie_us: int) -> None:
    rig = LeadRig(trip_ms=lambda _: 100.0)
    tell = rig.lead.seen

    def lying(chunk: int, now_us: int, **told: object) -> int:
        return tell(chunk, now_us, line=LineTiming(100 * MS), waited_us=lie_us)

    rig.lead.seen = lying  # type: ignore[method-assign]
    rig.run(30)
    assert 100 * MS <= rig.lead.allowed_us <= 1000 * MS
    assert rig.rate(5) >= 0.5 * rig.rate_hz


def test_the_clock_of_a_viewer_that_jumps_stops_nothing() -> None:
    rig = LeadRig(trip_ms=lambda _: 100.0)
    rig.clock = lambda now_us: now_us + (3_600_000 * MS if now_us > 5_000 * MS else 0)
    rig.run(10)
    assert rig.rate(6) >= 0.97 * rig.rate_hz
    rig.clock = lambda now_us: now_us
    # Back by an hour: the viewer itself holds what is due in an hour, and generation waits.
    rig.run(5)
    assert rig.most_unseen <= 1100 * MS


def test_a_viewer_who_only_reports_once_a_second_gets_what_the_bound_allows() -> None:
    """A tab that is throttled to one timer a second shows and reports a picture each time."""
    rig = LeadRig(trip_ms=lambda _: 100.0)
    rig.clock = lambda now_us: now_us // (1000 * MS) * 1000 * MS
    rig.run(20)
    assert rig.most_unseen <= 1000 * MS + rig.frame_us
    assert rig.rate(5) >= 0.9


def test_a_part_of_the_oldest_chunk_counts_as_seen_while_it_plays() -> None:
    lead = PlayoutLead(Lead(1), frame_us=40 * MS, kept=8)
    lead.put_out(0, 40 * MS, 0, end_us=40 * MS)
    lead.seen(0, 60 * MS, line=LineTiming(60 * MS), waited_us=0)  # so 68 are needed
    lead.put_out(1, 40 * MS, 60 * MS, end_us=80 * MS)
    assert lead.full(60 * MS)
    assert lead.opens_us == 72 * MS
    assert lead.full(71 * MS)
    assert not lead.full(72 * MS)


def test_other_loops_of_the_session_have_the_lead_of_the_one_that_is_reported() -> None:
    told, other = (PlayoutLead(Lead(1), frame_us=40 * MS, kept=8) for _ in range(2))
    told.put_out(0, 40 * MS, 0, end_us=40 * MS)
    other.put_out(0, 40 * MS, 0, end_us=40 * MS)
    media_us = told.seen(0, 200 * MS, line=LineTiming(200 * MS), waited_us=0)
    other.seen_until(SeenUntil(media_us, delay_us=told.delay_us), 200 * MS)
    assert other.allowed_us == told.allowed_us > 200 * MS
    other.seen_until(SeenUntil(media_us), 210 * MS)
    assert other.allowed_us == 0


def test_a_viewer_who_takes_the_line_over_from_one_in_this_process_is_learned_anew() -> None:
    lead = PlayoutLead(Lead(1), frame_us=40 * MS, kept=8)
    lead.put_out(0, 40 * MS, 0, end_us=40 * MS)
    lead.seen(0, 300 * MS, line=LineTiming(300 * MS), waited_us=0)
    assert lead.allowed_us >= 300 * MS
    lead.put_out(1, 40 * MS, 300 * MS, end_us=80 * MS)
    lead.seen(1, 310 * MS)
    assert lead.allowed_us == 0


def test_what_a_viewer_is_slow_at_does_not_make_the_lead_grow_without_end() -> None:
    """It takes a tenth of a second for each picture and does not tell: more would only wait."""
    needs = LeadTime()
    now_us = 0
    for _ in range(500):
        now_us += 100 * MS
        took_us = max(100 * MS, needs.needed_us // 40 * 100)
        needs.acknowledged(took_us + 20 * MS, LineTiming(20 * MS), now_us, late=True)
    assert needs.needed_us <= 200 * MS


def test_one_outlier_among_many_delays_does_not_count() -> None:
    needs = LeadTime()
    for number in range(20):
        took_us = 900 * MS if number == 10 else 50 * MS
        needs.acknowledged(took_us, LineTiming(40 * MS), number * 40 * MS, waited_us=0)
    assert needs.delay_us == 50 * MS
