"""Media time of a session's streams, from the number of frames put out; never runs backwards."""

from collections.abc import Sequence

from reverie.models.contract.spec import StreamSpec

US = 1_000_000


class OutputClock:
    """Gives frames their presentation times, in microseconds, without drift from rounding."""

    def __init__(self, streams: Sequence[StreamSpec], start_us: int = 0) -> None:
        """Begin every stream at `start_us`."""
        self._rates = {stream.name: stream.rate_hz for stream in streams if stream.rate_hz > 0}
        self._frames = dict.fromkeys(self._rates, 0)
        self._starts_us = dict.fromkeys(self._rates, start_us)
        self._start_us = start_us

    @property
    def next_us(self) -> int:
        """When the next frame of the stream that is furthest begins."""
        return max((self.stream_us(name) for name in self._rates), default=self._start_us)

    def stream_us(self, stream: str) -> int:
        """Return when the next frame of `stream` begins."""
        rate = self._rates.get(stream)
        if not rate:
            return self._start_us
        return self._starts_us[stream] + round(self._frames[stream] * US / rate)

    def duration_us(self, stream: str) -> int:
        """Return how long one frame of `stream` is shown."""
        return round(US / self._rates[stream])

    def put_out(self, stream: str, frames: int) -> int:
        """Count `frames` (or samples); return when the first of them begins."""
        pts_us = self.stream_us(stream)
        self._frames[stream] += frames
        return pts_us

    def align(self, at_us: int = 0) -> None:
        """Have every stream continue at the same time, after a chunk was cut short.

        Args:
            at_us: not before this time.
        """
        self._start_us = max(self.next_us, at_us)
        self._starts_us = dict.fromkeys(self._rates, self._start_us)
        self._frames = dict.fromkeys(self._rates, 0)

    def catch_up(self, limit_us: int) -> None:
        """Have a stream that lags by more than `limit_us` continue with the one that is furthest.

        So a model whose sound is a little shorter than its pictures stays in step with them:
        the sound has a gap now and then.
        """
        next_us = self.next_us
        for name in self._rates:
            if next_us - self.stream_us(name) > limit_us:
                self._starts_us[name], self._frames[name] = next_us, 0
