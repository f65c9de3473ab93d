"""Speech is found in sound, and in nothing else."""

import numpy as np
import pytest
from speaking import RATE_HZ, Sound, music, noise, silence, speech

from reverie.media import Piece, SpeechDetector, SpeechEdge
from reverie.media.audio.voice_activity import WINDOW, VoiceActivity


def heard(sound: Sound, rate_hz: int = RATE_HZ, step: int = 320) -> list[SpeechEdge]:
    detector = SpeechDetector(rate_hz)
    edges: list[SpeechEdge] = []
    for start in range(0, len(sound), step):
        piece = Piece(round(start * 1e6 / rate_hz), sound[start : start + step, None])
        edges += detector.hear(piece)
    return edges


@pytest.mark.parametrize("voice", ["en", "en+f3", "de"])
def test_a_sentence_is_one_turn_from_its_first_word_to_its_last(voice: str) -> None:
    said = speech(voice=voice)
    edges = heard(np.concatenate([silence(1.0), said, silence(1.5)]))
    assert [edge.began for edge in edges] == [True, False]
    began, ended = edges
    assert began.pts_us == pytest.approx(1_000_000, abs=250_000)
    assert ended.duration_us == pytest.approx(len(said) * 1e6 / RATE_HZ, abs=600_000)
    assert ended.pts_us - began.pts_us == pytest.approx(ended.duration_us, abs=50_000)


def test_two_sentences_apart_are_two_turns() -> None:
    edges = heard(np.concatenate([speech("Go left."), silence(1.5), speech("Stop."), silence(1.5)]))
    assert [edge.began for edge in edges] == [True, False, True, False]


@pytest.mark.parametrize("sound", [silence(4), noise(4), noise(4, 0.4), music(4), noise(4, 1e-4)])
def test_silence_noise_and_music_are_no_speech(sound: Sound) -> None:
    assert heard(sound) == []


def test_a_knock_is_no_word() -> None:
    knock = silence(2)
    knock[8000:8100] = 0.9
    assert heard(knock) == []


@pytest.mark.parametrize(("rate_hz", "step"), [(48_000, 960), (44_100, 441), (8000, 37)])
def test_speech_is_found_at_every_rate(rate_hz: int, step: int) -> None:
    said = np.concatenate([silence(0.5), speech(), silence(1.5)])
    times = np.arange(round(len(said) * rate_hz / RATE_HZ)) * RATE_HZ / rate_hz
    given = np.interp(times, np.arange(len(said)), said).astype(np.float32)
    assert [edge.began for edge in heard(given, rate_hz, step)] == [True, False]


def test_who_is_cut_off_in_mid_word_has_stopped() -> None:
    detector = SpeechDetector(RATE_HZ)
    said = speech()
    [began] = detector.hear(Piece(0, said[: RATE_HZ * 2, None]))
    [ended] = detector.finish()
    assert began.began
    assert not ended.began
    assert detector.finish() == ()


def test_the_network_sees_one_window_at_a_time_and_remembers() -> None:
    said = speech()
    voice = VoiceActivity()
    windows = [said[start : start + WINDOW] for start in range(0, len(said) - WINDOW, WINDOW)]
    likely = [voice.likelihood(window) for window in windows]
    assert all(0 <= each <= 1 for each in likely)
    assert np.mean(np.array(likely) > 0.5) > 0.7
    again = VoiceActivity()
    assert [again.likelihood(window) for window in windows] == likely
