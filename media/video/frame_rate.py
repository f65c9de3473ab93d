"""Frames of any rate to frames of one rate: each moment shows the newest frame.

Frames are skipped where they come faster and repeated where they come slower. Times of a clip may
repeat, go back a little or jump without causing a burst.
"""

from reverie.media.raw import Piece

LONGEST_HOLD_S = 1.0
"""The longest time that a frame is repeated; after a longer gap the next frame follows at once."""


class SteadyRate:
    """One clip at `rate_hz`. Its times rise by exactly one frame."""

    def __init__(self, rate_hz: float) -> None:
        self._step_us = 1e6 / rate_hz
        self._held: Piece | None = None  # newest frame, not returned yet for its moment
        self._start_us = 0
        self._ticks = 0  # moments that were returned, counted from the start
        self._shift_us = 0.0  # time removed from the clip by gaps and jumps back

    def take(self, frame: Piece) -> tuple[Piece, ...]:
        """Take the next frame; return those whose moments are over. The last one returns all."""
        held, out = self._held, []
        if held is None:
            self._start_us, self._ticks, self._shift_us = frame.pts_us, 0, 0.0
        else:
            out = self._until(held, self._moment(frame))
        self._held = frame
        if frame.last:
            out.append(self._stamped(frame, last=True))
            self._held = None
        return tuple(out)

    @property
    def open(self) -> bool:
        """Whether a clip has begun and not ended."""
        return self._held is not None

    def finish(self) -> tuple[Piece, ...]:
        """End the clip with its newest frame."""
        held, self._held = self._held, None
        return () if held is None else (self._stamped(held, last=True),)

    def _moment(self, frame: Piece) -> float:
        """Return a frame's time since the start, with gaps closed and never going back."""
        now_us = self._ticks * self._step_us
        due_us = frame.pts_us - self._start_us - self._shift_us
        nearest_us = now_us + min(max(due_us - now_us, 0.0), LONGEST_HOLD_S * 1e6)
        if due_us - now_us < -LONGEST_HOLD_S * 1e6 or nearest_us < due_us:
            self._shift_us += due_us - nearest_us
        return nearest_us

    def _until(self, held: Piece, end_us: float) -> list[Piece]:
        out = []
        while self._ticks * self._step_us < end_us - self._step_us / 2:
            out.append(self._stamped(held, last=False))
        return out

    def _stamped(self, frame: Piece, *, last: bool) -> Piece:
        pts_us = self._start_us + round(self._ticks * self._step_us)
        self._ticks += 1
        return Piece(pts_us, frame.data, last)
