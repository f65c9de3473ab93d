"""Text to sound by a program of the host: one process a phrase, with limits, never on the loop."""

import asyncio
import contextlib
import os
import shutil
import struct
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from reverie.media.audio.sound import Sound, SoundShape
from reverie.media.errors import SpeechError

ESPEAK = "espeak-ng"
ESPEAK_SHAPE = SoundShape(22_050, 1)

_PHRASE_CHARS = 1000
_LONGEST_S = 60
_SILENCE = 200  # of 32767: quieter sound at the ends of a phrase is cut off


class Speech(Protocol):
    """A speech synthesizer."""

    @property
    def shape(self) -> SoundShape:
        """The format of its sound, which never changes."""

    async def say(self, text: str) -> Sound:
        """Return the sound of a phrase, which may be empty. Safe to cancel.

        Raises:
            SpeechError: it cannot be spoken; the next phrase may be.
        """


@dataclass(frozen=True, slots=True)
class Espeak:
    """Speaks with espeak-ng.

    Attributes:
        path: of the program.
        language: as espeak names it, such as `en` or `en-us`.
        limit_s: a phrase that takes longer fails.
    """

    path: str
    language: str = "en"
    words_per_min: int = 170
    limit_s: float = 10.0

    @classmethod
    def find(cls, language: str = "en", words_per_min: int = 170) -> "Espeak":
        """Return a voice.

        Raises:
            SpeechError: the program is not on this host.
        """
        path = shutil.which(ESPEAK)
        if path is None:
            raise SpeechError(f"there is no {ESPEAK} on this host")
        return cls(path, language, words_per_min)

    @property
    def shape(self) -> SoundShape:
        """The format of its sound."""
        return ESPEAK_SHAPE

    async def say(self, text: str) -> Sound:
        """Return the sound of a phrase. Too long a sound is cut off."""
        # The text is written to a pipe, so that no word of it can be taken for an option.
        options = ("--stdin", "--stdout", "-v", self.language, "-s", str(self.words_per_min))
        try:
            process = await asyncio.create_subprocess_exec(
                self.path,
                *options,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"},
            )
        except OSError as error:
            raise SpeechError(f"{ESPEAK} cannot be started: {error}") from error
        try:
            async with asyncio.timeout(self.limit_s):
                wave = await _exchange(process, text[:_PHRASE_CHARS].encode("utf-8", "replace"))
        except TimeoutError as error:
            raise SpeechError(f"{ESPEAK} took over {self.limit_s:g} s") from error
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        return _trimmed(_samples(wave))


async def _exchange(process: asyncio.subprocess.Process, text: bytes) -> bytes:
    """Give a process its input and return its output, of a bounded size."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(text)
        await process.stdin.drain()
        process.stdin.close()
    most = ESPEAK_SHAPE.rate_hz * 2 * _LONGEST_S
    out = bytearray()
    while len(out) < most and (piece := await process.stdout.read(2**16)):
        out += piece
    if len(out) < most and await process.wait() != 0:
        raise SpeechError(f"{ESPEAK} ended with status {process.returncode}")
    return bytes(out[:most])


def _samples(wave: bytes) -> Sound:
    """Return the samples of a WAVE file whose sizes are not filled in, because it was streamed."""
    if not wave:
        return np.zeros((0, 1), np.int16)
    if wave[:4] != b"RIFF" or wave[8:16] != b"WAVEfmt " or wave[36:40] != b"data":
        raise SpeechError(f"{ESPEAK} returned no WAVE file")
    channels, rate_hz = struct.unpack_from("<HI", wave, 22)
    if (rate_hz, channels) != (ESPEAK_SHAPE.rate_hz, ESPEAK_SHAPE.channels):
        raise SpeechError(f"{ESPEAK} returned sound of {rate_hz} Hz with {channels} channels")
    body = wave[44 : len(wave) - len(wave) % 2]
    return np.frombuffer(body, "<i2").astype(np.int16)[:, None]


def _trimmed(samples_NC: Sound) -> Sound:
    """Return the sound without the silence before and after it."""
    loud = np.flatnonzero(np.abs(samples_NC[:, 0].astype(np.int32)) > _SILENCE)
    if not len(loud):
        return samples_NC[:0]
    return samples_NC[loud[0] : loud[-1] + 1]
