"""The round trip to a client, from samples."""

from reverie.engine.lead_time import LineTiming
from reverie.sessions.attachments.round_trip import RoundTrip

MS = 1000


def sampled(*times_ms: float, every_ms: int = 150) -> RoundTrip:
    trip = RoundTrip()
    for number, took_ms in enumerate(times_ms):
        trip.note(round(took_ms * MS), number * every_ms * MS)
    return trip


def test_a_client_in_this_process_is_on_no_line_and_one_that_is_begins_with_a_short_one() -> None:
    trip = RoundTrip()
    assert trip.line is None
    trip.expected = True
    assert trip.line == LineTiming(0)
    trip.note(70 * MS, 0)
    assert trip.line == LineTiming(70 * MS)


def test_it_is_the_middle_one_and_the_jitter_how_far_the_others_are_from_it() -> None:
    assert sampled(90, 100, 110).line == LineTiming(100 * MS, 6667)


def test_one_message_that_was_sent_again_is_jitter_and_no_longer_line() -> None:
    line = sampled(50, 50, 50, 700, 50, 50).line
    assert line is not None
    assert line.round_trip_us == 50 * MS


def test_a_line_that_becomes_long_or_short_is_followed_within_a_second_or_so() -> None:
    assert sampled(*[20] * 20, *[400] * 6).line.round_trip_us == 400 * MS  # type: ignore[union-attr]
    assert sampled(*[400] * 20, *[20] * 6).line.round_trip_us == 20 * MS  # type: ignore[union-attr]


def test_the_least_is_known_with_three_samples_and_follows_a_line_that_becomes_long() -> None:
    assert sampled(20, 20).least_us == 0
    assert sampled(90, 50, 70).least_us == 50 * MS
    assert sampled(*[20] * 5, *[400] * 12).least_us == 400 * MS


def test_the_last_sample_stays_when_no_other_comes() -> None:
    trip = RoundTrip()
    trip.note(80 * MS, 0)
    trip.note(90 * MS, 100_000 * MS)
    assert trip.line == LineTiming(90 * MS)


def test_a_clock_that_went_back_makes_no_round_trip_negative() -> None:
    assert sampled(-5).line == LineTiming(0)
