"""From a media chunk to pixels or samples, for codecs that need no decoder."""

import numpy as np
from numpy.typing import NDArray

from reverie.sessions.protocol.errors import NotPixelsError, NotSamplesError
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit


def to_picture(chunk: MediaChunk, init: MediaInit) -> NDArray[np.uint8]:
    """Return the frame [H, W, 3] of an `rgb24` chunk; read-only, and it copies nothing.

    Args:
        init: the stream's latest `media.init`.

    Raises:
        NotPixelsError: the codec is another, or the chunk is not of that stream.
    """
    if init.codec != "rgb24" or init.stream != chunk.stream:
        raise NotPixelsError(f"{chunk.stream} is coded as {init.codec}, which needs a decoder")
    size = init.width * init.height * 3
    if len(chunk.data) != size:
        raise NotPixelsError(f"the chunk has {len(chunk.data)} bytes, not {size}")
    return np.frombuffer(chunk.data, np.uint8).reshape(init.height, init.width, 3)


def to_samples(chunk: MediaChunk, init: MediaInit) -> NDArray[np.int16]:
    """Return the samples [N, C] of a `pcm16` chunk; read-only, and it copies nothing.

    Args:
        init: the stream's latest `media.init`.

    Raises:
        NotSamplesError: the codec is another, or the chunk is not of that stream.
    """
    if init.codec != "pcm16" or init.stream != chunk.stream:
        raise NotSamplesError(f"{chunk.stream} is coded as {init.codec}, which needs a decoder")
    if not init.channels or len(chunk.data) % (2 * init.channels):
        raise NotSamplesError(f"{len(chunk.data)} bytes are no samples of {init.channels} channels")
    return np.frombuffer(chunk.data, "<i2").reshape(-1, init.channels)
