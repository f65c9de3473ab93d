"""An encoder that a test can hold up or break."""

import threading
from collections import Counter

from reverie.media import Codec, EncodedFrame, Picture, Size, VideoEncoder, open_encoder


class GatedEncoders:
    """Opens real encoders; each frame waits for the gate, which is open at first.

    Attributes:
        opened: encoders by codec.
        encoding: set while a frame waits at the closed gate.
        live: encoders that are open.
    """

    def __init__(self) -> None:
        self.opened: Counter[Codec] = Counter()
        self.gate = threading.Event()
        self.gate.set()
        self.encoding = threading.Event()
        self.fails_at_us: int | None = None
        self.live = 0
        self.threads: set[str] = set()

    def open(self, codec: Codec, size: Size, rate_hz: float) -> VideoEncoder:
        self.opened[codec] += 1
        self.live += 1
        return _GateEncoder(self, open_encoder(codec, size, rate_hz))


class _GateEncoder:
    def __init__(self, owner: GatedEncoders, encoder: VideoEncoder) -> None:
        self._owner = owner
        self._encoder = encoder

    def encode(self, frame_HWC: Picture, pts_us: int, force_key: bool) -> EncodedFrame:
        self._owner.threads.add(threading.current_thread().name)
        self._owner.encoding.set()
        assert self._owner.gate.wait(20), "the test never opened the gate"
        if pts_us == self._owner.fails_at_us:
            raise ValueError("the encoder broke")
        return self._encoder.encode(frame_HWC, pts_us, force_key)

    def close(self) -> None:
        self._owner.live -= 1
        self._encoder.close()
