"""Sound at any rate, in pieces of any length, at one rate."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from listening import pitch_hz, tone
from numpy.typing import NDArray

from reverie.media import AudioIntake, BadInputError, RawAudio
from reverie.media.audio.audio_intake import PIECE_S

Sound = NDArray[Any]


def wave(hz: float, seconds: float, rate_hz: int, channels: int = 1) -> Sound:
    times = np.arange(round(seconds * rate_hz)) / rate_hz
    samples = 0.5 * np.sin(2 * np.pi * hz * times).astype(np.float32)
    return np.repeat(samples[:, None], channels, axis=1)


def pushed(
    intake: AudioIntake, samples: Sound, rate_hz: int, step: int, *, last: bool = True
) -> Sound:
    """Push sound in pieces of `step` samples; return what came out."""
    out = []
    for start in range(0, len(samples), step):
        raw = RawAudio(
            samples[start : start + step],
            round(start * 1e6 / rate_hz),
            rate_hz=rate_hz,
            last=last and start + step >= len(samples),
        )
        pieces = intake.take(raw)
        assert all(len(piece.data) <= PIECE_S * 48_000 for piece in pieces)
        out += [piece.data for piece in pieces]
    return np.concatenate(out)


def residue_db(samples: Sound, hz: float, rate_hz: int) -> float:
    """Return how loud what is no tone of `hz` is beside it; a click would be in it."""
    times = np.arange(len(samples)) / rate_hz
    basis = np.stack([np.sin(2 * np.pi * hz * times), np.cos(2 * np.pi * hz * times)], axis=1)
    weights, *_ = np.linalg.lstsq(basis, samples, rcond=None)
    rest = np.abs(samples - basis @ weights).max()
    return float(20 * np.log10(max(rest, 1e-9) / np.abs(samples).max()))


@pytest.mark.parametrize("rate_hz", [8000, 16_000, 44_100, 48_000])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("piece_ms", [10, 20, 37])
def test_c35_a_tone_keeps_its_pitch_its_length_and_its_smoothness(
    rate_hz: int, channels: int, piece_ms: int
) -> None:
    given = wave(1000.0, 2.0, rate_hz, channels)
    out = pushed(AudioIntake(48_000, 2), given, rate_hz, rate_hz * piece_ms // 1000)
    assert len(out) / 48_000 == pytest.approx(2.0, abs=0.02)
    assert pitch_hz(out[:, 0], 48_000) == pytest.approx(1000, abs=1)
    middle = out[4800:-4800, 0].astype(np.float64)
    assert residue_db(middle, 1000.0, 48_000) < -40


def test_bytes_of_pcm_mean_what_they_say() -> None:
    left = tone(440.0, 0.1, 16_000, channels=2)
    raw = RawAudio(left.astype("<i2").tobytes(), 0, "pcm16", 16_000, 2, last=True)
    out = np.concatenate([piece.data for piece in AudioIntake(16_000, 2).take(raw)])
    assert np.abs(out - left / 32768).max() < 1e-6
    floats = RawAudio(out.astype("<f4").tobytes(), 0, "pcmf32", 16_000, 2, last=True)
    again = np.concatenate([piece.data for piece in AudioIntake(16_000, 2).take(floats)])
    assert np.array_equal(again, out)


def test_mono_is_the_middle_of_both_sides_and_is_heard_on_both() -> None:
    both = np.stack([np.full(480, 0.5), np.full(480, -0.25)], axis=1).astype(np.float32)
    [middle] = AudioIntake(48_000, 1).take(RawAudio(both, 0, rate_hz=48_000))
    assert np.allclose(middle.data, 0.125)
    [twice] = AudioIntake(48_000, 2).take(RawAudio(both[:, :1], 0, rate_hz=48_000))
    assert np.allclose(twice.data, 0.5)


@pytest.mark.parametrize(
    ("samples", "rate_hz", "why"),
    [
        (np.zeros((480, 6), np.float32), 48_000, "mono or stereo"),
        (np.zeros((0, 1), np.float32), 48_000, "needs samples"),
        (np.zeros((480, 1), np.float32), 7999, "8000 to 48000"),
        (np.zeros((480, 1), np.float32), 96_000, "8000 to 48000"),
        (np.zeros((480, 1), np.float32), 0, "8000 to 48000"),
        (np.full((480, 1), np.nan, np.float32), 48_000, "not finite"),
        (np.full((480, 1), np.inf, np.float32), 48_000, "not finite"),
        (np.zeros((480_001, 1), np.float32), 48_000, "at most 10 s"),
    ],
)
def test_what_is_no_sound_is_refused(samples: Sound, rate_hz: int, why: str) -> None:
    intake = AudioIntake(48_000)
    with pytest.raises(BadInputError, match=why):
        intake.take(RawAudio(samples, 0, rate_hz=rate_hz))
    assert intake.take(RawAudio(np.zeros((480, 1), np.float32), 0, rate_hz=48_000))


def test_bytes_that_are_no_whole_samples_or_no_opus_are_refused() -> None:
    with pytest.raises(BadInputError, match="not a whole number of pcm"):
        AudioIntake(48_000).take(RawAudio(b"12345", 0, "pcm16", 48_000, 2))
    with pytest.raises(BadInputError, match="mono or stereo"):
        AudioIntake(48_000).take(RawAudio(b"123456", 0, "pcm16", 48_000, 3))
    with pytest.raises(BadInputError, match="the Opus packet cannot"):
        AudioIntake(48_000).take(RawAudio(b"\xff" * 40, 0, "opus"))


def test_what_is_too_loud_is_cut_off() -> None:
    [piece] = AudioIntake(48_000).take(RawAudio(np.full((480, 1), 7, np.float32), 0, rate_hz=48000))
    assert np.array_equal(piece.data, np.ones((480, 1), np.float32))


def test_another_rate_or_a_leap_in_time_begins_anew_and_loses_nothing() -> None:
    intake = AudioIntake(48_000)
    first = pushed(intake, wave(500.0, 0.5, 16_000), 16_000, 320, last=False)
    later = intake.take(RawAudio(wave(500.0, 0.5, 44_100), 9_000_000, rate_hz=44_100, last=True))
    at = [piece.pts_us for piece in later]
    assert sum(len(piece.data) for piece in later) + len(first) == pytest.approx(48_000, abs=64)
    assert 9_000_000 in at
    assert at == sorted(at)


def test_times_of_pieces_follow_on_each_other() -> None:
    intake, at = AudioIntake(16_000), []
    for number in range(50):
        raw = RawAudio(np.zeros((441, 1), np.float32), number * 10_000, rate_hz=44_100)
        at += [(piece.pts_us, len(piece.data)) for piece in intake.take(raw)]
    ends = [pts_us + round(count * 1e6 / 16_000) for pts_us, count in at]
    assert np.abs(np.array(ends[:-1]) - [pts_us for pts_us, _ in at[1:]]).max() <= 1


@settings(max_examples=30, deadline=None)
@given(
    rate_hz=st.sampled_from([8000, 11_025, 16_000, 22_050, 44_100, 48_000]),
    cuts=st.lists(st.integers(1, 2000), min_size=1, max_size=30).filter(lambda c: sum(c) > 300),
)
def test_however_sound_is_cut_it_comes_out_the_same(rate_hz: int, cuts: list[int]) -> None:
    given = wave(700.0, sum(cuts) / rate_hz, rate_hz)
    whole = pushed(AudioIntake(16_000), given, rate_hz, len(given))
    intake, parts, start = AudioIntake(16_000), [], 0
    for number, count in enumerate(cuts):
        raw = RawAudio(
            given[start : start + count],
            round(start * 1e6 / rate_hz),
            rate_hz=rate_hz,
            last=number == len(cuts) - 1,
        )
        parts += [piece.data for piece in intake.take(raw)]
        start += count
    cut = np.concatenate(parts)
    assert len(cut) == len(whole)
    assert np.abs(cut - whole).max() < 1e-4
