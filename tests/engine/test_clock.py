"""Media time."""

from reverie.engine.outputs import OutputClock
from reverie.models.contract.spec import StreamKind, StreamSpec

VIDEO = StreamSpec("video", StreamKind.VIDEO, 64, 64, 12.0)
SOUND = StreamSpec("sound", StreamKind.AUDIO, rate_hz=16_000.0)
TEXT = StreamSpec("text", StreamKind.TEXT)


def test_times_do_not_drift_from_rounding() -> None:
    clock = OutputClock([VIDEO])
    times = [clock.put_out("video", 1) for _ in range(1201)]
    assert times[:3] == [0, 83_333, 166_667]
    assert times[1200] == 100_000_000
    assert clock.duration_us("video") == 83_333


def test_it_continues_from_the_time_it_is_given() -> None:
    clock = OutputClock([VIDEO], start_us=5)
    assert clock.put_out("video", 12) == 5
    assert clock.next_us == 1_000_005


def test_after_a_cut_all_streams_continue_at_the_same_time_and_none_goes_back() -> None:
    clock = OutputClock([VIDEO, SOUND])
    clock.put_out("video", 12)
    clock.put_out("sound", 8_000)
    clock.align()
    assert clock.put_out("sound", 1) == 1_000_000
    assert clock.put_out("video", 1) == 1_000_000


def test_sound_that_falls_behind_its_pictures_continues_with_them() -> None:
    clock = OutputClock([VIDEO, SOUND])
    for chunk in range(3):
        clock.put_out("video", 12)
        assert clock.put_out("sound", 15_800) == chunk * 987_500  # 12.5 ms short each time
        clock.catch_up(limit_us=40_000)
    clock.put_out("video", 12)
    clock.put_out("sound", 15_800)
    clock.catch_up(limit_us=40_000)
    assert clock.stream_us("sound") == clock.stream_us("video") == 4_000_000


def test_text_has_no_time_of_its_own() -> None:
    clock = OutputClock([TEXT], start_us=3)
    assert clock.next_us == 3
    assert OutputClock([TEXT, VIDEO]).stream_us("text") == 0
