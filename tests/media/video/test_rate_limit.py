"""How many bits a stream may have: what the lower median of its watchers can take."""

import itertools
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from reverie.media import Codec, FrameTag, open_encoder
from reverie.media.video.rendition import LIMIT_INTERVAL_US, LIMIT_STEP, Rendition
from reverie.media.video.subscription import VideoSubscription


def tag(pts_us: int) -> FrameTag:
    return FrameTag(pts_us, 33_333, 0, 0, True, 0)


def watched(count: int) -> tuple[Rendition, list[VideoSubscription]]:
    rendition = Rendition(Codec.VP8, None, 30.0, open_encoder)

    def nothing(*_: object) -> None:
        pass

    ask: Callable[[], None] = nothing
    watchers = [VideoSubscription(nothing, ask, nothing, rendition.limit) for _ in range(count)]
    return rendition, watchers


def test_without_reports_there_is_no_limit() -> None:
    rendition, _ = watched(3)
    assert rendition.take_limit(tag(0)) is None


def test_of_several_the_lower_median_counts() -> None:
    rendition, watchers = watched(4)
    for watcher, rate in zip(watchers, (100_000, 400_000, 900_000, 5_000_000), strict=True):
        watcher.limit(rate)
    assert rendition.take_limit(tag(0)) == 400_000
    watchers[1].close()
    rendition.limit(watchers[1], None)
    assert rendition.take_limit(tag(10_000_000)) == 900_000


def test_less_acts_at_once_and_more_after_a_while() -> None:
    rendition, (watcher,) = watched(1)
    watcher.limit(1_000_000)
    assert rendition.take_limit(tag(0)) == 1_000_000
    watcher.limit(500_000)
    assert rendition.take_limit(tag(1)) == 500_000
    watcher.limit(900_000)
    assert rendition.take_limit(tag(2)) == 500_000
    assert rendition.take_limit(tag(1 + LIMIT_INTERVAL_US)) == 900_000


@given(st.lists(st.integers(100_000, 10_000_000), min_size=2, max_size=50))
def test_every_change_is_a_large_one(reports: list[int]) -> None:
    rendition, (watcher,) = watched(1)
    limits = []
    for number, report in enumerate(reports):
        watcher.limit(report)
        limits.append(rendition.take_limit(tag(number * 100_000)))
    changes = [(a, b) for a, b in itertools.pairwise(limits) if a != b]
    assert all(a and b and abs(b - a) >= LIMIT_STEP * a for a, b in changes)


def test_a_viewer_on_a_narrow_line_does_not_slow_the_driver() -> None:
    rendition, (phone,) = watched(1)

    def nothing(*_: object) -> None:
        pass

    driver = VideoSubscription(nothing, nothing, nothing, rendition.limit, leads=True)
    rendition.subscriptions += [phone, driver]
    phone.limit(200_000)
    assert rendition.take_limit(tag(0)) is None, "nothing is known of the driver's line"
    driver.limit(900_000)
    assert rendition.take_limit(tag(10_000_000)) == 900_000
    driver.limit(100_000)
    assert rendition.take_limit(tag(20_000_000)) == 100_000
