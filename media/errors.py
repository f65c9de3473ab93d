"""What can go wrong with media.

MediaError
├── BadInputError            pushed media cannot be read or is too large; tell the client, continue
├── InputStuckError          pushed media keeps a decoder busy for ever; end the session
├── MissingExtraError        an optional package is needed for this; the message names it
├── UnsupportedPictureError  no codec here takes the picture; fix the model's output
├── UnsupportedSoundError    likewise of sound
├── SpeechError              a phrase was not spoken; the next one may be
├── EncodeError              an encoder failed or hung; end the stream, never freeze
└── FormatError              bytes are not what their codec says; they came from a broken encoder
"""


class MediaError(Exception):
    """Base of all errors of this package."""


class BadInputError(MediaError):
    """A picture, a clip or sound that was pushed cannot be used; the message says why."""


class InputStuckError(MediaError):
    """A decoder hangs on pushed media."""


class MissingExtraError(MediaError):
    """An optional package is not installed."""


class UnsupportedPictureError(MediaError):
    """A frame is not 8-bit RGB, or its size is outside the limits, which the message names."""


class UnsupportedSoundError(MediaError):
    """Samples are not 16-bit [N, C] of as many channels as the stream has."""


class SpeechError(MediaError):
    """This host has no voice, or it could not speak a phrase; the message says which."""


class EncodeError(MediaError):
    """An encoder failed or hung; the stream has ended for all its viewers."""


class FormatError(MediaError):
    """A bitstream does not parse."""
