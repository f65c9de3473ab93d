"""The pictures that clients push while a session is recorded, encoded only for the recording."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor

from reverie.media import EncodedFrame, FrameTag, MediaError, MediaFrame, Picture, Size
from reverie.media.files.appended_file import AppendedFile
from reverie.media.files.fragmented_mp4 import FragmentedMp4
from reverie.media.video.h264 import H264Encoder

logger = logging.getLogger(__name__)

WAITING = 8
"""Pictures that may wait for the encoder; beyond it, they are left out and counted."""

KEY_EVERY_US = 2_000_000
_FRAME_US = 33_333
_RATE_HZ = 30.0


class InputRecordingWriter:
    """Takes pictures until `stop`. Their times are those of the server's clock. Never waits."""

    def __init__(self, file: AppendedFile, executor: Executor, now_us: Callable[[], int]) -> None:
        """Record nothing yet.

        Args:
            file: the file to append to.
            executor: encodes, one job at a time.
            now_us: a monotonic clock.
        """
        self._file = file
        self._executor = executor
        self._now_us = now_us
        self._mp4 = FragmentedMp4()
        self._encoder: H264Encoder | None = None  # the executor's
        self._size: Size | None = None
        self._waiting = 0
        self._from_us: int | None = None
        self._keyed_us = 0
        self._over = False
        self.left_out = 0

    @property
    def size_bytes(self) -> int:
        """Size of the file."""
        return self._mp4.recorded.size_bytes

    @property
    def frames(self) -> int:
        """How many pictures it holds."""
        return self._mp4.recorded.frames

    def picture(self, picture: Picture) -> None:
        """Record the next picture; it must not be changed afterwards."""
        if self._over:
            return
        if self._waiting >= WAITING:
            self.left_out += 1
            return
        now_us = self._now_us()
        if self._from_us is None:
            self._from_us = self._keyed_us = now_us
        pts_us = now_us - self._from_us
        key = now_us - self._keyed_us >= KEY_EVERY_US
        self._keyed_us = now_us if key else self._keyed_us
        self._waiting += 1
        loop = asyncio.get_running_loop()
        encoding = loop.run_in_executor(self._executor, self._encode, picture, pts_us, key)
        encoding.add_done_callback(lambda done: self._encoded(done, pts_us))

    def stop(self) -> None:
        """Record nothing more; idempotent."""
        self._over = True

    async def finish(self) -> None:
        """Return once all pictures are in the file, and it is closed."""
        await asyncio.get_running_loop().run_in_executor(self._executor, self._close)
        self._file.append(self._mp4.finish())
        await self._file.close()

    def _encode(self, picture: Picture, pts_us: int, key: bool) -> EncodedFrame:
        size = Size.of(picture)
        if self._encoder is None or size != self._size:
            self._encoder, self._size = H264Encoder(size, _RATE_HZ), size
        return self._encoder.encode(picture, pts_us, key)

    def _close(self) -> None:
        if self._encoder is not None:
            self._encoder.close()

    def _encoded(self, done: "asyncio.Future[EncodedFrame]", pts_us: int) -> None:
        self._waiting -= 1
        try:
            tag = FrameTag(pts_us, _FRAME_US, chunk=0, frame=0, last=False, step=0)
            self._file.append(self._mp4.picture(MediaFrame(done.result(), tag)))
        except (MediaError, asyncio.CancelledError) as error:
            logger.warning("a pushed picture was not recorded: %s", error)
            self.left_out += 1
            self._mp4.lose()
