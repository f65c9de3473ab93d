"""The queue in front of the sound encoders: bounded in time, the oldest sound is dropped."""

from collections import deque
from dataclasses import dataclass, replace

from reverie.media.audio.sound import PACKET_US, Sound, SoundShape, SoundTag


@dataclass(frozen=True, slots=True)
class QueuedSound:
    """A piece that waits for the encoders; `dropped` packets were lost just before it."""

    samples_NC: Sound
    tag: SoundTag
    dropped: int = 0


class DropOldestSound:
    """Holds a limited time of sound; a new piece replaces the oldest ones.

    The piece after a lost one counts it and says that it does not follow.
    """

    def __init__(self, shape: SoundShape, capacity_us: int) -> None:
        """Hold at most `capacity_us`, but always the newest piece."""
        self._shape = shape
        self._capacity_us = capacity_us
        self._pieces: deque[QueuedSound] = deque()
        self._waiting = 0  # samples
        self.dropped = 0  # packets

    def __len__(self) -> int:
        return len(self._pieces)

    def put(self, samples_NC: Sound, tag: SoundTag) -> None:
        """Add the newest piece."""
        self._pieces.append(QueuedSound(samples_NC, tag))
        self._waiting += len(samples_NC)
        while len(self._pieces) > 1 and self._waiting_us > self._capacity_us:
            lost = self.take()
            count = -(-self._shape.duration_us(len(lost.samples_NC)) // PACKET_US)
            self.dropped += count
            heir = self._pieces[0]
            self._pieces[0] = replace(
                heir,
                dropped=heir.dropped + lost.dropped + count,
                tag=replace(heir.tag, discontinuity=True),
            )

    def take(self) -> QueuedSound:
        """Remove the oldest piece. There must be one."""
        piece = self._pieces.popleft()
        self._waiting -= len(piece.samples_NC)
        return piece

    def clear(self) -> None:
        """Forget all pieces; they do not count as dropped."""
        self._pieces.clear()
        self._waiting = 0

    @property
    def _waiting_us(self) -> int:
        return self._shape.duration_us(self._waiting)
