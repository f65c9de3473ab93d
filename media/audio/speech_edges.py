"""When somebody begins to speak in a stream of sound, and when they have stopped."""

from dataclasses import dataclass

import numpy as np

from reverie.media.audio.resampler import Resampler, mixed
from reverie.media.audio.voice_activity import RATE_HZ, WINDOW, VoiceActivity
from reverie.media.raw import Piece, Samples

BEGINS_AT = 0.5
ENDS_BELOW = 0.35
"""Likelihoods; apart, so that a word in between does not make two turns."""
BEGINS_AFTER = 3
"""Windows of 32 ms in a row: a knock is no word."""
ENDS_AFTER = 19
"""Likewise: 0.6 s, for people breathe."""

_WINDOW_US = round(WINDOW * 1e6 / RATE_HZ)


@dataclass(frozen=True, slots=True)
class SpeechEdge:
    """A turn begins, or has ended.

    Attributes:
        pts_us: where it begins, or where the last word ended, on the clock of whoever pushes.
        duration_us: of the turn that ended.
    """

    began: bool
    pts_us: int
    duration_us: int = 0


class SpeechDetector:
    """Listens to the pieces of one stream. Blocks for a moment: for the thread that decodes them.

    Raises:
        MissingExtraError: silero-vad is not installed.
    """

    def __init__(self, rate_hz: int) -> None:
        """Listen to sound at `rate_hz`, of any number of channels."""
        self._voice = VoiceActivity()
        self._resampler = Resampler(rate_hz, RATE_HZ, 1)
        self._waiting: Samples = np.zeros((0, 1), np.float32)
        self._at_us = 0  # where the window begins that is next
        self._began_us: int | None = None  # of the turn that goes on
        self._loud = self._quiet = 0  # windows in a row

    def hear(self, piece: Piece) -> tuple[SpeechEdge, ...]:
        """Take the next piece of sound; return what begins and ends with it."""
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
        """Return the end of the turn that goes on: nothing more is heard for now."""
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
