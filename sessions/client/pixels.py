"""From a media chunk to pixels, for codecs that need no decoder."""

import numpy as np
from numpy.typing import NDArray

from reverie.sessions.protocol.errors import NotPixelsError
from reverie.sessions.protocol.events import MediaChunk, MediaInit


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
