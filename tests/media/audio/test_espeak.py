"""Text to sound, by a program of the host, and what such a program may do wrong."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from reverie.media import SpeechError
from reverie.media.audio.espeak import ESPEAK_SHAPE, Espeak


def program(folder: Path, script: str) -> Espeak:
    """Return a voice whose program is a shell script."""
    path = folder / "voice"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return Espeak(str(path), limit_s=20.0)


def runs(pid: Path) -> bool:
    """Tell whether the process runs that has written its number down."""
    return pid.exists() and Path(f"/proc/{pid.read_text().strip()}").exists()


async def test_a_sentence_is_heard() -> None:
    samples = await Espeak.find().say("I see a frozen lake.")
    assert samples.dtype == np.int16
    assert samples.shape[1] == ESPEAK_SHAPE.channels
    assert 0.5 < len(samples) / ESPEAK_SHAPE.rate_hz < 4.0
    assert np.abs(samples).max() > 3000


async def test_a_longer_sentence_takes_longer_and_haste_takes_less() -> None:
    short = await Espeak.find().say("A lake.")
    long = await Espeak.find().say("A lake, and behind it a forest, and behind that the sea.")
    hasty = await Espeak.find(words_per_min=400).say(
        "A lake, and behind it a forest, and behind that the sea."
    )
    assert len(short) < len(hasty) < len(long)


@pytest.mark.parametrize(
    "text", ["--help", "-f /etc/passwd", "<audio src='x'/>", "\x00\x1b[0m", "🙂"]
)
async def test_no_text_is_an_option_or_a_command(text: str, tmp_path: Path) -> None:
    samples = await Espeak.find().say(text)
    assert len(samples) < 20 * ESPEAK_SHAPE.rate_hz


@pytest.mark.parametrize("text", ["", "   ", "..."])
async def test_what_has_no_words_is_no_sound_or_little(text: str) -> None:
    assert len(await Espeak.find().say(text)) < 2 * ESPEAK_SHAPE.rate_hz


async def test_endless_text_is_cut_off() -> None:
    samples = await Espeak.find(words_per_min=450).say("lake " * 100_000)
    assert 1 < len(samples) / ESPEAK_SHAPE.rate_hz <= 60


async def test_a_host_without_the_program_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SpeechError, match="no espeak-ng on this host"):
        Espeak.find()
    with pytest.raises(SpeechError, match="cannot be started"):
        await Espeak(str(tmp_path / "nothing")).say("a lake")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo no wave at all, but long enough to be taken for one", "no WAVE"),
        ("cat >/dev/null; exit 3", "status 3"),
        ("exit 1", "status 1"),
    ],
)
async def test_a_program_that_does_otherwise_is_an_error(
    script: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(SpeechError, match=told):
        await program(tmp_path, script).say("a lake")


async def test_a_program_that_hangs_is_ended() -> None:
    voice = Espeak("/bin/cat", limit_s=20.0)
    with pytest.raises(SpeechError):
        await voice.say("a lake")  # cat knows no such options


async def test_a_program_that_never_ends_is_given_up(tmp_path: Path) -> None:
    script = "echo $$ > " + str(tmp_path / "pid") + "; exec sleep 1000"
    voice = Espeak(program(tmp_path, script).path, limit_s=1.0)
    with pytest.raises(SpeechError, match="took over 1 s"):
        await voice.say("a lake")
    assert not runs(tmp_path / "pid")


async def test_endless_output_is_not_gathered(tmp_path: Path) -> None:
    head = (
        "printf 'RIFF\\377\\377\\377\\177WAVEfmt \\020\\000\\000\\000\\001\\000\\001\\000"
        "\\042\\126\\000\\000\\104\\254\\000\\000\\002\\000\\020\\000data\\377\\377\\377\\177'"
    )
    samples = await program(tmp_path, f"{head}; exec yes").say("a lake")
    assert len(samples) <= 61 * ESPEAK_SHAPE.rate_hz


async def test_cancelling_ends_the_program(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    voice = program(tmp_path, f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000")
    saying = asyncio.create_task(voice.say("a lake"))
    async with asyncio.timeout(20):
        while not await asyncio.to_thread(pid.exists):
            await asyncio.sleep(0.005)
    saying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saying
    assert not runs(pid)
