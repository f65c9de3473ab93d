"""The bucket behind `rate_limited`."""

from reverie.rtc.rate_limit import Rates, TokenBucket


def test_a_burst_passes_and_then_the_rate_counts() -> None:
    bucket = TokenBucket(rate_per_s=10, burst=3, now_s=0.0)
    assert [bucket.wait_s(0.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert bucket.wait_s(0.0) == 0.1
    assert bucket.wait_s(0.1) == 0.0
    assert bucket.wait_s(0.1) > 0


def test_a_long_silence_fills_no_more_than_the_burst() -> None:
    bucket = TokenBucket(rate_per_s=10, burst=2, now_s=0.0)
    assert [bucket.wait_s(1000.0) > 0 for _ in range(3)] == [False, False, True]


def test_a_clock_that_stops_or_goes_back_gives_no_tokens() -> None:
    bucket = TokenBucket(rate_per_s=10, burst=1, now_s=5.0)
    assert bucket.wait_s(5.0) == 0.0
    assert bucket.wait_s(4.0) > 0


def test_a_look_takes_no_token() -> None:
    rates = Rates(per_min=2)
    assert [rates.wait_s("a", 0.0, take=False) for _ in range(5)] == [0.0] * 5
    assert rates.wait_s("a", 0.0) == 0.0
    assert [rates.wait_s("a", 0.0, take=False) for _ in range(2)] == [30.0, 30.0]
    assert rates.wait_s("a", 30.0) == 0.0
