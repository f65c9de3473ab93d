"""JPEG, for clients without an H.264 decoder: every frame is a key frame."""

from io import BytesIO

from PIL import Image

from reverie.media.types import Container, EncodedFrame, Picture, Size, StreamFormat


class JpegEncoder:
    """A `VideoEncoder` of one JPEG a frame."""

    def __init__(self, size: Size, quality: int = 88) -> None:
        """Keep the settings.

        Args:
            quality: Pillow's, 1 to 95.
        """
        self._format = StreamFormat("jpeg", Container.JPEG, size.width, size.height)
        self._quality = quality

    def encode(self, frame_HWC: Picture, pts_us: int, force_key: bool) -> EncodedFrame:
        """Encode one frame; `force_key` changes nothing."""
        out = BytesIO()
        Image.fromarray(frame_HWC).save(out, "JPEG", quality=self._quality)
        return EncodedFrame(out.getvalue(), pts_us, True, self._format)

    def close(self) -> None:
        """Do nothing: there is nothing to free."""
