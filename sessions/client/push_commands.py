"""From pushed media to commands: pictures in the size of their stream, sound in pieces.

The client does this on a thread, so that a large picture costs no more to send than a small one and
gives the same result in this process and over a network.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from av import VideoFrame
from numpy.typing import NDArray

from reverie.media import (
    BadInputError,
    IntakeLimits,
    Piece,
    RawVideo,
    Size,
    VideoIntake,
    fit,
    read_clip,
    read_picture,
)
from reverie.media.video.jpeg import JpegEncoder
from reverie.sessions.protocol.errors import CommandError, ErrorCode
from reverie.sessions.protocol.session_view import InputView

Pixels = NDArray[np.uint8]
"""A picture [H, W, 3] of any size."""

EXACT_BYTES = 2**19
"""A larger picture, from about 400x400, is sent as a JPEG, because messages are bounded."""
QUALITY = 95
PIECE_S = 0.5
"""Longest piece of sound in one command."""


@dataclass(frozen=True, slots=True)
class Push:
    """The fields of one `push_media` command.

    Attributes:
        pts_us: as in the fields.
    """

    fields: dict[str, object]
    pts_us: int


def find_input(
    inputs: tuple[InputView, ...], name: str | None, kind: str, *, prefers: str = ""
) -> InputView:
    """Return the input stream for a push.

    Args:
        inputs: the input streams of the program.
        name: None takes the first of its kind.
        kind: `video` or `audio`.
        prefers: the `merge` to choose when no name is given and there are both.

    Raises:
        CommandError: there is none.
    """
    fitting = [each for each in inputs if each.kind == kind]
    if name is None and fitting:
        return next((each for each in fitting if each.merge == prefers), fitting[0])
    for each in inputs:
        if each.name == name:
            if each in fitting:
                return each
            text = f"input stream {name!r} takes no {kind}"
            raise CommandError(ErrorCode.WRONG_TYPE, text, field="codec")
    known = ", ".join(each.name for each in inputs) or "none"
    wanted = "no such input stream" if name else f"the program takes no {kind}"
    raise CommandError(ErrorCode.UNKNOWN_STREAM, f"{wanted}; known: {known}", field="stream")


def picture_push(
    picture: "Pixels | VideoFrame | bytes | str | PathLike[str]",
    into: InputView,
    pts_us: int,
    *,
    last: bool,
) -> Push:
    """Return the push of a picture: pixels, a decoded frame, or a file or its bytes. Blocks.

    Raises:
        CommandError: it cannot be read or is too large.
        OSError: there is no such file.
    """
    size = Size(into.width, into.height)
    try:
        if isinstance(picture, str | PathLike):
            picture = Path(picture).read_bytes()
        if isinstance(picture, bytes):
            pixels = fit(read_picture(picture, IntakeLimits(), at_least=size), size)
        else:
            [piece] = VideoIntake(size).take(RawVideo(picture, pts_us))
            pixels = piece.data.astype(np.uint8, copy=False)  # a picture, not sound
    except BadInputError as error:
        raise CommandError(ErrorCode.BAD_MEDIA, str(error), field="data") from None
    return _pixels_push(Piece(pts_us, pixels, last), into)


class ClipPushes:
    """The pushes of a clip, one after the other, in the size and at the rate of its stream.

    Attributes:
        broken: why the clip ended early; None when it did not.
    """

    def __init__(self, clip: "bytes | str | PathLike[str]", into: InputView) -> None:
        """Read nothing yet."""
        self.broken: CommandError | None = None
        self._into = into
        self._frames = read_clip(clip)
        self._intake = VideoIntake(Size(into.width, into.height), into.rate_hz)
        self._ready: deque[Piece] = deque()
        self._over = False

    def next(self) -> Push | None:
        """Return the next push; None after the last. Blocks.

        Raises:
            OSError: there is no such file.
        """
        while not self._ready and not self._over:
            self._read()
        return _pixels_push(self._ready.popleft(), self._into) if self._ready else None

    def _read(self) -> None:
        try:
            frame = next(self._frames, None)
            if frame is not None:
                at_us = max(0, round((frame.time or 0.0) * 1e6))
                self._ready.extend(self._intake.take(RawVideo(frame, at_us)))
                return
        except BadInputError as error:
            self.broken = CommandError(ErrorCode.BAD_MEDIA, str(error), field="data")
        self._over = True
        self._ready.extend(self._intake.finish())


def _pixels_push(piece: Piece, into: InputView) -> Push:
    fields: dict[str, object] = {
        "stream": into.name,
        "pts_us": piece.pts_us,
        "last": piece.last,
    }
    if piece.data.nbytes > EXACT_BYTES:
        encoder = JpegEncoder(Size(into.width, into.height), QUALITY)
        packed = encoder.encode(piece.data.astype(np.uint8, copy=False), piece.pts_us, True)
        return Push({**fields, "codec": "jpeg", "data": packed.data}, piece.pts_us)
    size = {"width": into.width, "height": into.height}
    return Push({**fields, **size, "codec": "rgb24", "data": piece.data.tobytes()}, piece.pts_us)


def sound_pushes(
    samples: NDArray[np.float32], rate_hz: int, into: InputView, pts_us: int, *, last: bool
) -> Iterator[Push]:
    """Yield the pushes of a piece of sound of any length: [samples, channels] or [samples].

    Raises:
        CommandError: it is not sound.
    """
    _check_sound(samples, rate_hz)
    sound = samples[:, None] if samples.ndim == 1 else samples
    if sound.ndim != 2 or not len(sound) or rate_hz < 1:
        text = f"sound is [samples, channels] at a rate, not {list(samples.shape)} at {rate_hz}"
        raise CommandError(ErrorCode.BAD_MEDIA, text, field="data")
    longest = max(1, round(rate_hz * PIECE_S))
    for start in range(0, len(sound), longest):
        part = np.ascontiguousarray(sound[start : start + longest], dtype="<f4")
        yield Push(
            {
                "stream": into.name,
                "codec": "pcmf32",
                "pts_us": pts_us + round(start * 1e6 / rate_hz),
                "rate_hz": rate_hz,
                "channels": sound.shape[1],
                "last": last and start + longest >= len(sound),
                "data": part.tobytes(),
            },
            pts_us + round(start * 1e6 / rate_hz),
        )


def _check_sound(samples: object, rate_hz: object) -> None:
    if not isinstance(samples, np.ndarray) or samples.dtype.kind not in "fiu":
        what = f"an array of {samples.dtype}" if isinstance(samples, np.ndarray) else _kind(samples)
        text = f"sound is a float32 array [samples, channels] or [samples], not {what}"
        raise CommandError(ErrorCode.WRONG_TYPE, text, field="samples")
    if isinstance(rate_hz, bool) or not isinstance(rate_hz, int | np.integer):
        text = f"the rate of sound is a whole number of Hz, not {_kind(rate_hz)}"
        raise CommandError(ErrorCode.WRONG_TYPE, text, field="rate_hz")


def _kind(value: object) -> str:
    return f"a {type(value).__name__}"
