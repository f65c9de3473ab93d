"""Frames on their way from a model to a screen: types, a clock, encoders, and the fan-out.

Start at `fanout.py`: frames go in by `publish` and come out, encoded once per codec and size, at
each subscription; `audio_fanout.py` does the same with sound. This room imports no other: it knows
neither sockets nor sessions nor models.
"""

from reverie.media.audio_fanout import AudioFanout, AudioSubscription
from reverie.media.clock import Clock, MonotonicClock
from reverie.media.encoders import OpenEncoder, open_encoder
from reverie.media.errors import (
    EncodeError,
    FormatError,
    MediaError,
    UnsupportedPictureError,
    UnsupportedSoundError,
)
from reverie.media.fanout import VideoFanout
from reverie.media.sound import (
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
from reverie.media.subscription import Deliver, VideoSubscription
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

__all__ = [
    "OPUS_HZ",
    "PACKET_US",
    "AudioCodec",
    "AudioFanout",
    "AudioSubscription",
    "Clock",
    "Codec",
    "Container",
    "Deliver",
    "DeliverSound",
    "EncodeError",
    "EncodedFrame",
    "FormatError",
    "FrameTag",
    "MediaError",
    "MediaFrame",
    "MonotonicClock",
    "OpenEncoder",
    "Picture",
    "Size",
    "Sound",
    "SoundFormat",
    "SoundPacket",
    "SoundShape",
    "SoundTag",
    "StreamFormat",
    "UnsupportedPictureError",
    "UnsupportedSoundError",
    "VideoEncoder",
    "VideoFanout",
    "VideoSubscription",
    "open_encoder",
]
