"""What can go wrong with media.

MediaError
├── UnsupportedPictureError  no codec here takes the picture; fix the model's output
├── EncodeError              an encoder failed or hung; end the stream, never freeze
└── FormatError              bytes are not what their codec says; they came from a broken encoder
"""


class MediaError(Exception):
    """Base of all errors of this room."""


class UnsupportedPictureError(MediaError):
    """A frame is not 8-bit RGB, or its size is outside the limits, which the message names."""


class EncodeError(MediaError):
    """An encoder failed or hung; the stream has ended for everybody who watches it."""


class FormatError(MediaError):
    """A bitstream does not parse."""
