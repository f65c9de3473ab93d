"""One direction of a line, without a network: when packets come out."""

import pytest

from reverie.bench.line import PathCounts, PathSettings
from reverie.bench.line.path import Path

PACKET = bytes(1000)


def sent(path: Path, count: int, every_s: float = 0.01, start_s: float = 0.0) -> list[bytes]:
    """Send numbered packets at even times, and return them."""
    packets = [number.to_bytes(4, "big") for number in range(count)]
    for number, packet in enumerate(packets):
        path.enter(packet, start_s + number * every_s)
    return packets


def test_a_packet_comes_out_after_the_delay_and_not_before() -> None:
    path = Path(PathSettings(delay_ms=100))
    path.enter(PACKET, 5.0)
    assert path.next_s == pytest.approx(5.1)
    assert list(path.due(5.099)) == []
    assert list(path.due(5.101)) == [PACKET]
    assert path.counts == PathCounts(carried=1, carried_bytes=1000)


def test_the_share_of_packets_that_is_asked_for_is_lost() -> None:
    path = Path(PathSettings(loss=0.3), seed=1)
    sent(path, 2000)
    assert len(list(path.due(1e9))) == path.counts.carried
    assert path.counts.dropped == pytest.approx(600, abs=60)


def test_nothing_gets_through_a_loss_of_one() -> None:
    path = Path(PathSettings(loss=1.0))
    sent(path, 1000)
    assert list(path.due(1e9)) == []
    assert path.counts == PathCounts(dropped=1000)


def test_jitter_spreads_the_delay_and_keeps_the_order() -> None:
    path = Path(PathSettings(delay_ms=50, jitter_ms=40), seed=1)
    packets = sent(path, 400, every_s=0.1)
    delays, received = [], []
    while path.next_s < 1e9:
        out_s = path.next_s
        for packet in path.due(out_s):
            delays.append(out_s - int.from_bytes(packet, "big") * 0.1)
            received.append(packet)
    assert received == packets
    assert min(delays) == pytest.approx(0.010, abs=0.005)
    assert max(delays) == pytest.approx(0.090, abs=0.005)


def test_packets_overtake_each_other_only_when_asked_for() -> None:
    for reorder in (False, True):
        path = Path(PathSettings(delay_ms=50, jitter_ms=40, reorder=reorder), seed=1)
        packets = sent(path, 100)
        received = list(path.due(1e9))
        assert (received == packets) is not reorder
        assert sorted(received) == packets


def test_a_rate_spaces_packets_out_and_drops_what_would_wait_for_too_long() -> None:
    path = Path(PathSettings(rate_kbit=80, queue_ms=250))  # 1000 bytes take 100 ms
    for _ in range(10):
        path.enter(PACKET, 0.0)
    assert path.counts.dropped == 7
    assert len(list(path.due(0.101))) == 1
    assert len(list(path.due(0.299))) == 1
    assert len(list(path.due(0.301))) == 1


def test_a_longer_delay_acts_on_the_next_packet() -> None:
    path = Path(PathSettings(delay_ms=20))
    path.enter(b"before", 0.0)
    path.change(delay_ms=400)
    path.enter(b"after", 0.0)
    assert list(path.due(0.021)) == [b"before"]
    assert list(path.due(0.399)) == []
    assert list(path.due(0.401)) == [b"after"]


def test_a_shorter_delay_acts_on_packets_that_are_on_their_way() -> None:
    path = Path(PathSettings(delay_ms=400))
    path.enter(b"one", 0.0)
    path.enter(b"two", 0.1)
    path.change(delay_ms=20)
    path.enter(b"three", 0.11)
    assert list(path.due(0.021)) == [b"one"]
    assert list(path.due(0.131)) == [b"two", b"three"]


def test_a_line_that_got_its_rate_back_does_not_wait_for_the_old_one() -> None:
    path = Path(PathSettings(rate_kbit=8, queue_ms=10_000))  # 1000 bytes take a second
    for _ in range(3):
        path.enter(PACKET, 0.0)
    path.change(rate_kbit=8000)
    path.enter(b"after", 0.0)
    assert path.settings.queue_ms == 10_000
    assert len(list(path.due(3.001))) == 4


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"loss": 1.5}, "loss is 1.5"),
        ({"delay_ms": -1}, "delay_ms is -1"),
        ({"rate_kbit": float("nan")}, "rate_kbit is nan"),
    ],
)
def test_a_wrong_setting_is_named_and_changes_nothing(
    changes: dict[str, float], named: str
) -> None:
    path = Path(PathSettings(delay_ms=20))
    with pytest.raises(ValueError, match=named):
        path.change(**changes)  # type: ignore[arg-type]
    assert path.settings == PathSettings(delay_ms=20)
