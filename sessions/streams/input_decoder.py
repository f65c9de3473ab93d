"""Decoding of what a client pushes into one stream, and detection of speech in it, on a thread."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from reverie.media import (
    AudioIntake,
    BadInputError,
    InputStuckError,
    MissingExtraError,
    Piece,
    RawAudio,
    RawVideo,
    SpeechDetector,
    SpeechEdge,
    VideoIntake,
)
from reverie.media.job_thread import JobThread
from reverie.models.contract.spec import InputSpec

logger = logging.getLogger(__name__)

Intake = VideoIntake | AudioIntake

T = TypeVar("T")


class InputDecoder:
    """Decodes the pushes of one stream, in order; the thread starts with the first."""

    def __init__(self, spec: InputSpec, intake: Intake, decode_s: float) -> None:
        """Decode nothing yet.

        Args:
            spec: the stream.
            intake: decodes.
            decode_s: how long a push may take.
        """
        self._spec = spec
        self._intake = intake
        self._decode_s = decode_s
        self._speech: SpeechDetector | None = None
        self._thread: JobThread | None = None

    @property
    def open(self) -> bool:
        """Whether a clip has begun and not ended."""
        return self._intake.open

    async def decode(self, raw: RawVideo | RawAudio) -> tuple[Piece, ...]:
        """Return the pieces that a push makes.

        Raises:
            BadInputError: it cannot be read.
            InputStuckError: it was not decoded in time.
        """
        return await self._in_thread(partial(self._work, raw))

    async def finish(self) -> tuple[Piece, ...]:
        """End the clip, or sound, and return the rest of it. Raises as `decode` does."""
        return await self._in_thread(self._intake.finish)

    async def speech(self, pieces: tuple[Piece, ...]) -> tuple[SpeechEdge, ...]:
        """Return where speech begins and ends in pieces of sound.

        Raises:
            MissingExtraError: the detector is not installed.
        """
        return await self._in_thread(partial(self._listen, pieces))

    def speech_at_end(self) -> tuple[SpeechEdge, ...]:
        """Return the end of speech that the end of the sound is."""
        return tuple(self._speech.finish()) if self._speech is not None else ()

    def close(self) -> None:
        """Decode nothing more."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, work: Callable[[], tuple[T, ...]]) -> tuple[T, ...]:
        if self._thread is None:
            self._thread = JobThread(f"input {self._spec.name}")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._decode_s):
                return await loop.run_in_executor(self._thread, work)
        except TimeoutError:
            limit = f"{self._decode_s:g} s (decode_s)"
            raise InputStuckError(f"{self._spec.name}: not decoded within {limit}") from None
        except (BadInputError, MissingExtraError, asyncio.CancelledError):
            raise
        except Exception:
            # The session boundary: bytes that crash a decoder must not affect other sessions.
            logger.exception("input %s: decoding failed", self._spec.name)
            raise BadInputError("the media cannot be read") from None

    def _work(self, raw: RawVideo | RawAudio) -> tuple[Piece, ...]:
        match self._intake, raw:
            case (VideoIntake() as video, RawVideo()):
                return video.take(raw)
            case (AudioIntake() as audio, RawAudio()):
                return audio.take(raw)
        raise AssertionError("pushes are routed by their kind")

    def _listen(self, pieces: tuple[Piece, ...]) -> tuple[SpeechEdge, ...]:
        if self._speech is None:
            self._speech = SpeechDetector(round(self._spec.rate_hz))
        return tuple(edge for piece in pieces for edge in self._speech.hear(piece))
