"""The last seconds, kept for a clip."""

from hypothesis import given, settings
from hypothesis import strategies as st
from projection import Camera, interleaved, number_of, played, spoken

from reverie.media import MediaFrame
from reverie.media.files.replay import Replay, ReplayClip, make_clip

MUCH = 10**9


def kept(replay: Replay, count: int, camera: Camera | None = None) -> Replay:
    for each in (camera or Camera()).film(count):
        replay.picture(each)
    return replay


def clipped(
    replay: Replay, seconds_us: int, sounds: tuple[tuple[str, int], ...] = ()
) -> ReplayClip | None:
    groups = replay.last(seconds_us)
    return make_clip(groups, sounds) if groups else None


def test_a_clip_is_the_last_seconds_from_the_key_frame_before_them() -> None:
    replay = kept(Replay(10_000_000, MUCH), 100)  # key frames at 0 s, 2 s and 4 s
    clip = clipped(replay, 1_500_000)
    assert clip is not None
    assert clip.from_us == 2_000_000
    shown = played(clip.data)
    assert [number_of(each) for each in shown.pictures] == [each % 25 for each in range(40, 100)]
    assert clip.recorded.duration_us == 3_000_000


def test_a_clip_has_its_sound() -> None:
    replay = Replay(10_000_000, MUCH)
    for each in interleaved(Camera().film(100), spoken(5.0)):
        if isinstance(each, MediaFrame):
            replay.picture(each)
        else:
            replay.sound("sound", each)
    clip = clipped(replay, 1_000_000, (("sound", 1),))
    assert clip is not None
    shown = played(clip.data)
    assert abs(len(shown.sound[0]) / 48_000 - clip.recorded.duration_us / 1e6) < 0.05


def test_more_than_is_kept_cannot_be_had() -> None:
    replay = kept(Replay(2_000_000, MUCH), 400)
    clip = clipped(replay, 60_000_000)
    assert clip is not None
    assert 2_000_000 <= clip.recorded.duration_us <= 4_000_000 + 50_000
    assert clipped(Replay(1, 1), 1) is None


@settings(max_examples=12, deadline=None)
@given(st.integers(1_000, 60_000), st.integers(0, 3_000_000), st.integers(1, 100))
def test_it_is_bounded_and_whatever_is_kept_plays(size: int, keep_us: int, count: int) -> None:
    replay = Replay(keep_us, size)
    for each in interleaved(Camera().film(count), spoken(count / 20)):
        if isinstance(each, MediaFrame):
            replay.picture(each)
        else:
            replay.sound("sound", each)
        assert replay.size_bytes <= size
        assert replay.kept_us <= keep_us + 2_000_000
    clip = clipped(replay, keep_us, (("sound", 1),))
    if clip is not None:
        shown = played(clip.data)
        first = clip.from_us // 50_000
        assert [number_of(each) for each in shown.pictures] == [
            each % 25 for each in range(first, first + len(shown.pictures))
        ]


def test_after_a_loss_it_goes_on_from_a_key_frame() -> None:
    camera, replay = Camera(), Replay(60_000_000, MUCH)
    kept(replay, 30, camera)
    replay.lose()
    kept(replay, 30, camera)
    clip = clipped(replay, 60_000_000)
    assert clip is not None
    numbers = [number_of(each) for each in played(clip.data).pictures]
    assert numbers == [each % 25 for each in [*range(30), *range(40, 60)]]


def test_sound_without_pictures_does_not_pile_up() -> None:
    replay = kept(Replay(5_000_000, 50_000), 3)
    for packet in spoken(10.0):
        replay.sound("sound", packet)
        assert replay.size_bytes <= 50_000
