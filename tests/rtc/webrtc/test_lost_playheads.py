"""On a line that loses playheads the session goes on; on one that does not, it waits for them."""

from reverie.rtc.webrtc.lost_playheads import ALIVE_US, LostPlayheads


def on_a_line_that_loses(share: float) -> LostPlayheads:
    playheads = LostPlayheads()
    playheads.heard(0, 0)
    for report in range(200):  # of three packets each, as browsers send them
        lost = sum((3 * report + packet) % 100 < 100 * share for packet in range(3))
        playheads.reported(lost / 3)
    return playheads


def test_a_chunk_counts_as_seen_on_a_line_that_loses_much() -> None:
    playheads = on_a_line_that_loses(0.3)
    assert playheads.lossy
    assert playheads.counts(1, 1_000_000)


def test_a_line_that_loses_little_waits_for_the_playhead() -> None:
    playheads = on_a_line_that_loses(0.01)
    assert not playheads.lossy
    assert not playheads.counts(1, 1_000_000)


def test_a_report_without_losses_makes_no_good_line() -> None:
    playheads = on_a_line_that_loses(0.3)
    playheads.reported(0.0)
    assert playheads.lossy
    for _ in range(100):
        playheads.reported(0.0)
    assert not playheads.lossy


def test_what_was_seen_is_not_assumed_again() -> None:
    playheads = on_a_line_that_loses(0.3)
    playheads.heard(5, 0)
    assert not playheads.counts(5, 1)
    assert playheads.counts(6, 1)


def test_without_a_playhead_for_a_while_nothing_is_assumed() -> None:
    """A hidden page sends none, and a line that carries nothing at all brings none."""
    playheads = on_a_line_that_loses(0.3)
    assert playheads.counts(1, ALIVE_US - 1)
    assert not playheads.counts(1, ALIVE_US)
    playheads.heard(0, ALIVE_US)
    assert playheads.counts(1, ALIVE_US + 1)


def test_a_peer_that_never_reported_anything_is_waited_for() -> None:
    playheads = LostPlayheads()
    for _ in range(100):
        playheads.reported(1.0)
    assert not playheads.counts(0, 0)
