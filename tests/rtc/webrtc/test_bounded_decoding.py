"""Video of a camera is decoded within the limit of pixels, whatever its frames say."""

import asyncio
import queue
import struct
import threading
from fractions import Fraction
from typing import Any

import av
import pytest
from aiortc import rtcrtpreceiver
from aiortc.codecs import get_decoder
from aiortc.jitterbuffer import JitterFrame
from aiortc.rtcrtpparameters import RTCRtpCodecParameters
from moving_pictures import grey

from reverie.rtc.webrtc.bounded_decoding import BoundedDecoder, bound_decoders, vp8_size

CODECS = {"VP8": "libvpx", "H264": "libx264"}


def codec_of(name: str) -> RTCRtpCodecParameters:
    return RTCRtpCodecParameters(mimeType=f"video/{name}", clockRate=90_000, payloadType=97)


def frames(name: str, width: int, height: int, count: int = 2) -> list[JitterFrame]:
    """Return encoded frames, of which the first is a key frame."""
    encoder: Any = av.CodecContext.create(CODECS[name], "w")
    encoder.width, encoder.height, encoder.pix_fmt = width, height, "yuv420p"
    encoder.time_base, encoder.framerate = Fraction(1, 30), Fraction(30)
    encoder.options = (
        {"tune": "zerolatency"}
        if name == "H264"
        else {"deadline": "realtime", "lag-in-frames": "0"}
    )
    packets = []
    for number in range(count):
        frame = av.VideoFrame.from_ndarray(grey(90, width, height), "rgb24")
        frame.pts, frame.time_base = number, Fraction(1, 30)
        packets += encoder.encode(frame)
    packets += encoder.encode(None)
    return [JitterFrame(bytes(packet), 3000 * at) for at, packet in enumerate(packets)]


async def decoded(name: str, given: list[JitterFrame]) -> list[tuple[int, int]]:
    """Return the sizes of the pictures that aiortc's own worker makes of frames."""
    waiting: queue.Queue[Any] = queue.Queue()
    out: asyncio.Queue[Any] = asyncio.Queue()
    for frame in given:
        waiting.put((codec_of(name), frame))
    waiting.put(None)
    failed, loop = threading.Event(), asyncio.get_running_loop()
    worker = rtcrtpreceiver.decoder_worker
    async with asyncio.timeout(30):
        await asyncio.to_thread(worker, loop, waiting, out, failed)
        pictures = []
        while (frame := await out.get()) is not None:
            pictures.append((frame.width, frame.height))
    return pictures


@pytest.fixture(autouse=True)
def _bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rtcrtpreceiver, "get_decoder", get_decoder)  # put back afterwards
    bound_decoders(64 * 48)


@pytest.mark.parametrize("name", list(CODECS))
async def test_pictures_within_the_limit_are_decoded(name: str) -> None:
    assert await decoded(name, frames(name, 64, 48)) == [(64, 48)] * 2


@pytest.mark.parametrize("name", list(CODECS))
async def test_pictures_beyond_the_limit_are_not_and_what_comes_after_them_is(name: str) -> None:
    given = [*frames(name, 128, 96), *frames(name, 64, 48)]
    assert await decoded(name, given) == [(64, 48)] * 2


def test_a_key_frame_that_says_to_be_huge_never_reaches_the_decoder() -> None:
    inner = get_decoder(codec_of("VP8"))
    decoder = BoundedDecoder(inner, "VP8", 2**24)
    key, delta = frames("VP8", 64, 48)
    assert vp8_size(key.data) == (64, 48)
    assert vp8_size(delta.data) is None
    huge = key.data[:6] + struct.pack("<HH", 16_383, 16_383) + key.data[10:]
    assert decoder.decode(JitterFrame(huge, 0)) == []
    assert decoder.decode(delta) == []
    assert len(decoder.decode(key)) == 1


def test_other_decoders_are_left_alone() -> None:
    codec = RTCRtpCodecParameters(mimeType="audio/opus", clockRate=48_000, payloadType=96)
    make = vars(rtcrtpreceiver)["get_decoder"]
    assert not isinstance(make(codec), BoundedDecoder)
    assert isinstance(make(codec_of("VP8")), BoundedDecoder)
