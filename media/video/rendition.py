"""One codec at one size: its encoder, its viewers, and when it makes key frames."""

import av
import numpy as np
from av.video.reformatter import Interpolation

from reverie.media.types import (
    Codec,
    EncodedFrame,
    FrameTag,
    Picture,
    RateLimited,
    Size,
    VideoEncoder,
)
from reverie.media.video.encoders import OpenEncoder
from reverie.media.video.frame_queue import DropOldestFrames
from reverie.media.video.subscription import VideoSubscription

KEY_REQUEST_INTERVAL_US = 250_000
"""Requests for key frames within this time (media time) are merged."""

RARE_KEY_INTERVAL_US = 500_000
"""Likewise for viewers whose lines are behind while those of others are not."""

LIMIT_INTERVAL_US = 1_000_000
"""The least time before a higher bitrate limit acts, because each costs a key frame."""

LIMIT_STEP = 0.15
"""A smaller difference from the limit in effect is ignored."""


class Rendition:
    """Shared by all subscribers of one codec and size.

    `encode` and `close` belong to the encoding thread, all else to the event loop.
    """

    def __init__(
        self,
        codec: Codec,
        size: Size | None,
        rate_hz: float,
        open_encoder: OpenEncoder,
        queue_frames: int = 64,
    ) -> None:
        """Open the encoder with the first frame.

        Args:
            size: what to scale to; None keeps the size of the frames.
            queue_frames: frames that may wait while all watchers are held.
        """
        self.subscriptions: list[VideoSubscription] = []
        self.waiting = DropOldestFrames(queue_frames)
        self._codec = codec
        self._size = size
        self._rate_hz = rate_hz
        self._open_encoder = open_encoder
        self._encoder: VideoEncoder | None = None
        self._encoder_size: Size | None = None
        self._encoder_limit: int | None = None
        self._must_key = True
        self._key_requested = self._key_awaited = False
        self._last_key_us: int | None = None
        self._limits: dict[VideoSubscription, int] = {}  # bits a second that viewers can take
        self._limit: int | None = None  # in effect
        self._limited_us: int | None = None  # since when, in media time

    @property
    def is_ready(self) -> bool:
        """Whether a frame waits that a watcher has room for."""
        lead = [each for each in self.subscriptions if not each.follows] or self.subscriptions
        return bool(self.waiting) and not all(each.held for each in lead)

    def force_key(self) -> None:
        """Make the next frame a key frame."""
        self._must_key = True

    def request_key(self, *, rarely: bool = False) -> None:
        """Make a frame a key frame soon: the next one, unless another was just requested.

        Args:
            rarely: for a viewer that skips frames because of its line: it is shown single pictures
                meanwhile, and the others pay for the key frame.
        """
        self._key_requested = self._key_requested or not rarely
        self._key_awaited = True

    def limit(self, subscription: VideoSubscription, bits_per_s: int | None) -> None:
        """Note what a viewer can take; None: unknown, or the viewer has left."""
        if bits_per_s is None:
            self._limits.pop(subscription, None)
        else:
            self._limits[subscription] = bits_per_s

    def take_limit(self, tag: FrameTag) -> int | None:
        """Return the limit for a frame, changed in large steps.

        It is the viewers' lower median, but never below what one that leads can take.
        """
        wanted = self._wanted_limit()
        if wanted == self._limit:
            return self._limit
        if wanted is not None and self._limit is not None:
            small = abs(wanted - self._limit) < LIMIT_STEP * self._limit
            since_us = tag.pts_us - (self._limited_us or 0)
            if small or (wanted > self._limit and since_us < LIMIT_INTERVAL_US):
                return self._limit
        self._limit, self._limited_us = wanted, tag.pts_us
        return wanted

    def _wanted_limit(self) -> int | None:
        limits = sorted(self._limits.values())
        wanted = limits[(len(limits) - 1) // 2] if limits else None
        leading = [self._limits.get(each) for each in self.subscriptions if each.leads]
        for limit in leading:
            wanted = None if limit is None or wanted is None else max(wanted, limit)
        return wanted

    def take_key_frame_request(self, tag: FrameTag) -> bool:
        """Tell whether the frame must be a key frame, and clear the request if so."""
        interval_us = KEY_REQUEST_INTERVAL_US if self._key_requested else RARE_KEY_INTERVAL_US
        due = self._key_awaited and (
            self._last_key_us is None or tag.pts_us - self._last_key_us >= interval_us
        )
        if not (self._must_key or tag.discontinuity or due):
            return False
        self._must_key = self._key_requested = self._key_awaited = False
        self._last_key_us = tag.pts_us
        return True

    def encode(
        self, frame_HWC: Picture, pts_us: int, force_key: bool, bits_per_s: int | None = None
    ) -> EncodedFrame:
        """Encode a frame, with a new encoder when its size is new.

        Raises:
            MediaError: the encoder failed, or refuses the picture.
        """
        picture_HWC = _scaled(frame_HWC, self._size)
        size = Size.of(picture_HWC)
        if self._encoder is None or size != self._encoder_size:
            self.close()
            self._encoder = self._open_encoder(self._codec, size, self._rate_hz)
            self._encoder_size = size
            self._encoder_limit = None
        if bits_per_s != self._encoder_limit and isinstance(self._encoder, RateLimited):
            self._encoder.limit(bits_per_s)
            self._encoder_limit = bits_per_s
        return self._encoder.encode(picture_HWC, pts_us, force_key)

    def still(self, frame_HWC: Picture, pts_us: int) -> EncodedFrame:
        """Encode a frame by itself, outside the stream.

        Raises:
            MediaError: as for `encode`.
        """
        picture_HWC = _scaled(frame_HWC, self._size)
        encoder = self._open_encoder(self._codec, Size.of(picture_HWC), self._rate_hz)
        try:
            return encoder.encode(picture_HWC, pts_us, True)
        finally:
            encoder.close()

    def close(self) -> None:
        """Free the encoder; the next `encode` opens a new one."""
        if self._encoder is not None:
            self._encoder.close()
            self._encoder = None


def _scaled(frame_HWC: Picture, size: Size | None) -> Picture:
    if size is None or size == Size.of(frame_HWC):
        return frame_HWC
    scaled = av.VideoFrame.from_ndarray(frame_HWC, format="rgb24").reformat(
        width=size.width, height=size.height, interpolation=Interpolation.AREA
    )
    return np.asarray(scaled.to_ndarray(), dtype=np.uint8)
