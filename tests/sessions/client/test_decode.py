"""Exact pixels from `rgb24` chunks, and a typed error for everything else."""

import numpy as np
import pytest

from reverie.sessions.client.decode import to_picture
from reverie.sessions.protocol.errors import NotPixelsError
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit


def init(**changes: object) -> MediaInit:
    fields = {
        "stream": "video",
        "kind": "video",
        "codec": "rgb24",
        "container": "raw",
        "width": 4,
        "height": 2,
        "rate_hz": 20.0,
        "seed": 7,
    }
    return MediaInit.model_validate(fields | changes)


def chunk(data: bytes) -> MediaChunk:
    return MediaChunk(
        stream="video",
        index=0,
        pts_us=0,
        duration_us=1,
        key=True,
        chunk=0,
        frame=0,
        last=True,
        step=0,
        size_bytes=len(data),
        data=data,
    )


def test_the_pixels_come_out_as_they_went_in() -> None:
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    assert np.array_equal(to_picture(chunk(picture.tobytes()), init()), picture)


@pytest.mark.parametrize("changes", [{"codec": "jpeg"}, {"stream": "other"}, {"width": 5}])
def test_what_is_no_pixels_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(NotPixelsError):
        to_picture(chunk(bytes(24)), init(**changes))
