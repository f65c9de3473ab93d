"""Sound at any rate to one rate, as a stream: without a click between pieces."""

import numpy as np
from av import AudioFrame, AudioResampler

from reverie.media.raw import Samples

_LAYOUTS = {1: "mono", 2: "stereo"}


class Resampler:
    """Resamples one stream of sound from `from_hz` to `to_hz`."""

    def __init__(self, from_hz: int, to_hz: int, channels: int) -> None:
        self._from_hz = from_hz
        self._channels = channels
        self._swr = (
            AudioResampler(format="fltp", layout=_LAYOUTS[channels], rate=to_hz)
            if from_hz != to_hz
            else None
        )

    def take(self, samples_NC: Samples) -> Samples:
        """Return what is ready; a few samples are held back until more come."""
        if self._swr is None:
            return samples_NC
        if not len(samples_NC):
            return self._joined([])
        planes = np.ascontiguousarray(samples_NC.T, dtype=np.float32)
        frame = AudioFrame.from_ndarray(planes, "fltp", _LAYOUTS[self._channels])
        frame.sample_rate = self._from_hz
        return self._joined(self._swr.resample(frame))

    def flush(self) -> Samples:
        """End the stream; return what was held back."""
        swr, self._swr = self._swr, None
        return self._joined(swr.resample(None) if swr else [])

    def _joined(self, frames: list[AudioFrame]) -> Samples:
        planes = [frame.to_ndarray() for frame in frames]
        if not planes:
            return np.zeros((0, self._channels), np.float32)
        joined_NC = np.concatenate(planes, axis=1).T.astype(np.float32)
        return np.ascontiguousarray(joined_NC)


def mixed(samples_NC: Samples, channels: int) -> Samples:
    """Return sound with one channel or two: the mean of both, or the one repeated."""
    if samples_NC.shape[1] == channels:
        return samples_NC
    if channels == 1:
        middle: Samples = samples_NC.mean(axis=1, keepdims=True, dtype=np.float32)
        return middle
    return np.repeat(samples_NC, 2, axis=1)
