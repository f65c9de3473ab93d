"""A voice for the model's text: a stream of sound next to the text stream.

Phrases are spoken one after the other, each as soon as it is complete. The sound goes out as far as
the pictures have come, and a little ahead. So it keeps pace with them and pauses with them, and an
interrupt cuts it at once.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from reverie.engine.emissions import SamplesOut
from reverie.media import Sound, SpeechError
from reverie.media.audio.espeak import Speech
from reverie.sessions.streams.audio_stream import AudioStream
from reverie.sessions.streams.sentence_splitter import SentenceSplitter

logger = logging.getLogger(__name__)

AHEAD_US = 200_000
"""How far sound goes out before its pictures, so that it has no gap between two chunks."""

PIECE_US = 40_000
PHRASES = 32
"""Phrases that may wait to be spoken; beyond it, the oldest is dropped."""

PAUSE_US = 120_000
"""Between two phrases."""

UNHEARD_US = 10_000_000
"""Spoken sound that may wait for its pictures; beyond it, no phrase is spoken."""


@dataclass(frozen=True, slots=True)
class _Piece:
    samples: Sound
    last: bool  # of its phrase


class SpeechStream:
    """Speaks the text of one stream. All methods except `speak` return at once."""

    def __init__(
        self,
        sound: AudioStream,
        speech: Speech,
        session: str,
        failed: Callable[[str], None],
        follows: bool = True,
    ) -> None:
        """Speak nothing yet; `speak` does.

        Args:
            sound: the stream to fill, of the speech's shape.
            speech: the synthesizer.
            session: the session's id.
            failed: called each time that a phrase could not be spoken.
            follows: whether there are pictures to keep pace with.
        """
        self.sound = sound
        self._speech = speech
        self._session = session
        self._failed = failed
        self._follows = follows
        self._sentences = SentenceSplitter()
        self._waiting: deque[str] = deque(maxlen=PHRASES)
        self._unheard: deque[_Piece] = deque()
        self._unheard_us = 0
        self._speech_cancelled = 0  # how often it was cancelled
        self._until_us = 0  # media time that the pictures have reached
        self._end_us = 0  # media time at which the sent sound ends
        self._jumped = True
        self._speaking = False
        self._news = asyncio.Event()

    def say(self, text: str, final: bool) -> None:
        """Queue more text to be spoken."""
        self._waiting.extend(self._sentences.add(text, final))
        self._news.set()

    def cancel_speech(self) -> bool:
        """Stop in the middle of a word and drop the rest; return whether there was any."""
        speaking = self._end_us > self._until_us
        unsaid = bool(self._waiting or self._unheard) or self._speaking or speaking
        self._speech_cancelled += 1
        self._sentences.clear()
        self._waiting.clear()
        self._unheard.clear()
        self._unheard_us = 0
        self._jumped = True
        self.sound.cut(self._end_us)
        self._news.set()
        return unsaid

    def pictures(self, until_us: int) -> None:
        """Note that pictures were put out up to a media time, and let the sound follow."""
        self._until_us = max(self._until_us, until_us)
        self._let_out()

    async def speak(self) -> None:
        """Speak until cancelled."""
        while True:
            while not self._waiting or self._unheard_us > UNHEARD_US:
                self._news.clear()
                await self._news.wait()
            phrase, speech_cancelled = self._waiting.popleft(), self._speech_cancelled
            self._speaking = True
            try:
                samples = await self._speech.say(phrase)
            except SpeechError as error:
                logger.warning("session %s: a phrase was not spoken: %s", self._session, error)
                self._failed("a phrase of the model could not be spoken")
                continue
            finally:
                self._speaking = False
            if speech_cancelled == self._speech_cancelled:
                self._hear(samples)

    def _hear(self, samples: Sound) -> None:
        shape = self._speech.shape
        length = shape.rate_hz * PIECE_US // 1_000_000
        if not self._unheard and self._end_us < self._until_us:  # it paused while pictures came
            self._end_us, self._jumped = self._until_us, True
        for start in range(0, len(samples), length):
            piece = samples[start : start + length]
            self._unheard.append(_Piece(piece, last=start + length >= len(samples)))
            self._unheard_us += shape.duration_us(len(piece))
        self._let_out()

    def _let_out(self) -> None:
        while self._unheard:
            if self._follows and self._end_us >= self._until_us + AHEAD_US:
                return
            self._put_out(self._unheard.popleft())
        self._news.set()

    def _put_out(self, piece: _Piece) -> None:
        duration_us = self._speech.shape.duration_us(len(piece.samples))
        begins_us, jumped = self._end_us, self._jumped
        self._unheard_us -= duration_us
        self._end_us, self._jumped = begins_us + duration_us, False
        self.sound.publish(
            SamplesOut(
                session=self._session,
                stream=self.sound.stream.name,
                chunk=-1,  # it belongs to no loop's chunk
                step=0,
                pts_us=begins_us,
                duration_us=duration_us,
                samples=piece.samples,
                discontinuity=jumped,
            )
        )
        if piece.last:
            self.sound.fanout.finish()  # its last packet does not wait for the next phrase
            self._end_us += PAUSE_US
            self._jumped = True
