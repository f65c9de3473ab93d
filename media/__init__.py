"""Frames and sound between model and client: types, a clock, decoders, encoders, and the fan-outs.

Start at `video/video_fanout.py`: frames go in by `publish` and come out, encoded once per codec and
size, at each subscription; `audio/audio_fanout.py` does the same with sound. It imports no other
package: it knows neither sockets nor sessions nor models.
"""

from reverie.media.audio.audio_fanout import AudioFanout, AudioSubscription
from reverie.media.audio.audio_intake import AudioIntake
from reverie.media.audio.sound import (
    OPUS_HZ,
    PACKET_US,
    AudioCodec,
    DeliverSound,
    Sound,
    SoundFormat,
    SoundPacket,
    SoundShape,
    SoundTag,
)
from reverie.media.audio.speech_edges import SpeechDetector, SpeechEdge
from reverie.media.clock import Clock, MonotonicClock
from reverie.media.errors import (
    BadInputError,
    EncodeError,
    FormatError,
    InputStuckError,
    MediaError,
    MissingExtraError,
    SpeechError,
    UnsupportedPictureError,
    UnsupportedSoundError,
)
from reverie.media.files.clips import is_clip, read_clip
from reverie.media.raw import Piece, RawAudio, RawVideo
from reverie.media.types import (
    Codec,
    Container,
    EncodedFrame,
    FrameTag,
    MediaFrame,
    Picture,
    Size,
    StreamFormat,
    VideoEncoder,
)
from reverie.media.video.encoders import OpenEncoder, open_encoder
from reverie.media.video.fitting import fit
from reverie.media.video.pictures import PICTURE_FILE, IntakeLimits, read_picture
from reverie.media.video.subscription import Deliver, VideoSubscription
from reverie.media.video.upright import upright_pixels
from reverie.media.video.video_fanout import VideoFanout
from reverie.media.video.video_intake import VideoIntake

__all__ = [
    "OPUS_HZ",
    "PACKET_US",
    "PICTURE_FILE",
    "AudioCodec",
    "AudioFanout",
    "AudioIntake",
    "AudioSubscription",
    "BadInputError",
    "Clock",
    "Codec",
    "Container",
    "Deliver",
    "DeliverSound",
    "EncodeError",
    "EncodedFrame",
    "FormatError",
    "FrameTag",
    "InputStuckError",
    "IntakeLimits",
    "MediaError",
    "MediaFrame",
    "MissingExtraError",
    "MonotonicClock",
    "OpenEncoder",
    "Picture",
    "Piece",
    "RawAudio",
    "RawVideo",
    "Size",
    "Sound",
    "SoundFormat",
    "SoundPacket",
    "SoundShape",
    "SoundTag",
    "SpeechDetector",
    "SpeechEdge",
    "SpeechError",
    "StreamFormat",
    "UnsupportedPictureError",
    "UnsupportedSoundError",
    "VideoEncoder",
    "VideoFanout",
    "VideoIntake",
    "VideoSubscription",
    "fit",
    "is_clip",
    "open_encoder",
    "read_clip",
    "read_picture",
    "upright_pixels",
]
