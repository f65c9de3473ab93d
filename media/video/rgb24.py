"""Raw RGB, for Python clients that need exact pixels: rows top down, three bytes a pixel."""

from reverie.media.types import Container, EncodedFrame, Picture, Size, StreamFormat


class Rgb24Encoder:
    """A `VideoEncoder` that only copies."""

    def __init__(self, size: Size) -> None:
        """Keep the format."""
        self._format = StreamFormat("rgb24", Container.RAW, size.width, size.height)

    def encode(self, frame_HWC: Picture, pts_us: int, force_key: bool) -> EncodedFrame:
        """Copy one frame; `force_key` changes nothing."""
        return EncodedFrame(frame_HWC.tobytes(), pts_us, True, self._format)

    def close(self) -> None:
        """Do nothing: there is nothing to free."""
