"""Queues in front of the encoders: bounded, the oldest frame is dropped."""

from collections import deque
from dataclasses import dataclass, replace

from reverie.media.types import FrameTag, Picture


@dataclass(frozen=True, slots=True)
class QueuedFrame:
    """A frame that waits for the encoders; `dropped` frames were lost just before it.

    Attributes:
        due_us: when a receiver that plays at the media's own speed shows it.
    """

    frame_HWC: Picture
    tag: FrameTag
    dropped: int = 0
    due_us: int = 0


class DropOldestFrames:
    """Holds at most `capacity` frames; a new one replaces the oldest.

    The frame after a lost one inherits its discontinuity and counts it.
    """

    def __init__(self, capacity: int) -> None:
        """Hold at most `capacity` frames, 1 or more."""
        assert capacity >= 1, "a queue needs room for one frame"
        self._capacity = capacity
        self._frames: deque[QueuedFrame] = deque()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._frames)

    def put(self, frame_HWC: Picture, tag: FrameTag, due_us: int = 0) -> None:
        """Add the newest frame."""
        self.add(QueuedFrame(frame_HWC, tag, due_us=due_us))

    def add(self, queued: QueuedFrame) -> None:
        """Add the newest frame, of another queue."""
        self._frames.append(queued)
        if len(self._frames) > self._capacity:
            self._lose_oldest()

    def take(self) -> QueuedFrame:
        """Remove the oldest frame. There must be one."""
        return self._frames.popleft()

    def shed(self, before_us: int) -> None:
        """Lose the frames that were due before a time, but never the newest."""
        while len(self._frames) > 1 and self._frames[0].due_us < before_us:
            self._lose_oldest()

    def clear(self) -> None:
        """Forget all frames; they do not count as dropped."""
        self._frames.clear()

    def _lose_oldest(self) -> None:
        lost = self._frames.popleft()
        self.dropped += 1
        heir = self._frames[0]
        discontinuity = heir.tag.discontinuity or lost.tag.discontinuity
        self._frames[0] = replace(
            heir,
            dropped=heir.dropped + lost.dropped + 1,
            tag=replace(heir.tag, discontinuity=discontinuity),
        )
