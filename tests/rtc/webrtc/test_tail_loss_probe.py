"""The last packets may be lost without a request for them."""

from reverie.rtc.webrtc.tail_loss_probe import FIRST_S, LONGEST_S, TailLossProbe


def test_what_was_seen_is_not_shown_again() -> None:
    probe = TailLossProbe()
    probe.sent(3, 10.0)
    assert not probe.due(10.0 + FIRST_S / 2)
    probe.seen(3)
    assert not probe.due(100.0)


def test_an_unconfirmed_picture_is_sent_again_less_and_less_often() -> None:
    probe = TailLossProbe()
    probe.sent(3, 0.0)
    probe.sent(3, 0.4)  # shown once more: no news
    times = [now / 100 for now in range(6000) if probe.due(now / 100)]
    gaps = [after - before for before, after in zip([0.0, *times], times, strict=False)]
    assert gaps[:5] == [FIRST_S, 1.0, 2.0, 4.0, LONGEST_S]
    assert gaps[-1] == LONGEST_S
    probe.sent(4, 60.0)
    assert probe.due(60.0 + FIRST_S)


def test_after_going_back_what_comes_is_watched_again() -> None:
    probe = TailLossProbe()
    probe.sent(9, 0.0)
    probe.seen(9)
    probe.seen(2)
    probe.sent(3, 1.0)
    assert probe.due(1.0 + FIRST_S)
