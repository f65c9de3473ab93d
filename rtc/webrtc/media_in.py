"""Media that a peer sends: pictures and sound of its camera, microphone or tool, for the session.

Every frame is taken at once, because frames that aiortc has decoded would pile up otherwise. The
session's rule for the stream decides which are used.
"""

from contextlib import suppress

import numpy as np
from aiortc import MediaStreamTrack
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame, VideoFrame
from numpy.typing import NDArray

from reverie.sessions import ServerSession
from reverie.sessions.protocol.errors import CommandError


async def feed(server_session: ServerSession, stream: str, track: MediaStreamTrack) -> None:
    """Pass the frames of a track to the session until the track ends."""
    while True:
        try:
            frame = await track.recv()
        except MediaStreamError:
            return
        with suppress(CommandError):  # the stream is full, or the session has ended
            if isinstance(frame, VideoFrame):
                server_session.inputs.put_video(stream, frame, _pts_us(frame))
            elif isinstance(frame, AudioFrame):
                server_session.inputs.put_audio(
                    stream, _samples(frame), frame.sample_rate, _pts_us(frame)
                )


def _samples(frame: AudioFrame) -> NDArray[np.float32]:
    """Return the sound [samples, channels] in -1..1; aiortc decodes to interleaved 16 bits."""
    pcm16 = frame.to_ndarray().reshape(-1, len(frame.layout.channels))
    return pcm16.astype(np.float32) / np.float32(2**15)


def _pts_us(frame: VideoFrame | AudioFrame) -> int:
    if frame.pts is None or frame.time_base is None:
        return 0
    return max(0, round(frame.pts * frame.time_base * 1_000_000))
