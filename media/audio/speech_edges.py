"""The beginnings and ends of speech in a stream of sound."""

from dataclasses import dataclass

import numpy as np

from reverie.media.audio.resampler import Resampler, mixed
from reverie.media.audio.voice_activity import RATE_HZ, WINDOW, VoiceActivity
from reverie.media.raw import Piece, Samples

BEGINS_AT = 0.5
ENDS_BELOW = 0.35
"""Likelihoods; they differ so that a value in between does not make two turns."""
BEGINS_AFTER = 3
"""Windows of 32 ms in a row, so that a knock is not taken for speech."""
ENDS_AFTER = 19
"""Likewise: 0.6 s, because people pause to breathe."""

_WINDOW_US = round(WINDOW * 1e6 / RATE_HZ)


@dataclass(frozen=True, slots=True)
class SpeechEdge:
    """The beginning or the end of a turn.

    Attributes:
        pts_us: its beginning, or the end of its last word, on the client's clock.
        duration_us: of the turn that ended.
    """

    began: bool
    pts_us: int
    duration_us: int = 0


class SpeechDetector:
    """Listens to the pieces of one stream. Blocks briefly, so it runs on the decoding thread.

    Raises:
        MissingExtraError: silero-vad is not installed.
    """

    def __init__(self, rate_hz: int) -> None:
        """Listen to sound at `rate_hz`, of any number of channels."""
        self._voice = VoiceActivity()
        self._resampler = Resampler(rate_hz, RATE_HZ, 1)
        self._waiting: Samples = np.zeros((0, 1), np.float32)
        self._at_us = 0  # beginning of the next window
        self._began_us: int | None = None  # of the current turn
        self._loud = self._quiet = 0  # windows in a row

    def hear(self, piece: Piece) -> tuple[SpeechEdge, ...]:
        """Take the next piece of sound; return the edges in it."""
        if not len(self._waiting):
            self._at_us = piece.pts_us
        mono = self._resampler.take(mixed(piece.data.astype(np.float32, copy=False), 1))
        self._waiting = np.concatenate([self._waiting, mono])
        edges = []
        while len(self._waiting) >= WINDOW:
            window, self._waiting = self._waiting[:WINDOW, 0], self._waiting[WINDOW:]
            edge = self._judged(self._voice.likelihood(window))
            self._at_us += _WINDOW_US
            edges += [edge] if edge else []
        return tuple(edges)

    def finish(self) -> tuple[SpeechEdge, ...]:
        """End the current turn, because the sound ends for now."""
        began_us, self._began_us = self._began_us, None
        self._loud = self._quiet = 0
        if began_us is None:
            return ()
        return (SpeechEdge(False, self._at_us, max(0, self._at_us - began_us)),)

    def _judged(self, likelihood: float) -> SpeechEdge | None:
        self._loud = self._loud + 1 if likelihood >= BEGINS_AT else 0
        self._quiet = self._quiet + 1 if likelihood < ENDS_BELOW else 0
        if self._began_us is None and self._loud >= BEGINS_AFTER:
            self._began_us = self._at_us - (BEGINS_AFTER - 1) * _WINDOW_US
            return SpeechEdge(True, self._began_us)
        if self._began_us is not None and self._quiet >= ENDS_AFTER:
            ended_us = self._at_us - (ENDS_AFTER - 1) * _WINDOW_US
            began_us, self._began_us = self._began_us, None
            return SpeechEdge(False, ended_us, max(0, ended_us - began_us))
        return None
