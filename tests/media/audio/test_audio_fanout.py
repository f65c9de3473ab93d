"""From sound to every listener."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
from listening import decoded, pitch_hz, tone

from reverie.media import (
    AudioCodec,
    AudioFanout,
    EncodeError,
    Sound,
    SoundPacket,
    SoundShape,
    SoundTag,
    UnsupportedSoundError,
)
from reverie.media.audio.sound_rendition import SoundEncoder

LIMIT_S = 20.0


@asynccontextmanager
async def running(
    rate_hz: int = 48_000, channels: int = 1, queue_s: float = 5.0
) -> AsyncIterator[AudioFanout]:
    fanout = AudioFanout(rate_hz, channels, queue_s=queue_s)
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(fanout.run(), name="run")
        yield fanout
        fanout.close()


def pieces(samples_NC: Sound, length: int, rate_hz: int) -> list[tuple[Sound, SoundTag]]:
    """Cut sound into pieces of `length` samples, as a loop puts it out."""
    return [
        (samples_NC[start : start + length], SoundTag(round(start * 1e6 / rate_hz), chunk=chunk))
        for chunk, start in enumerate(range(0, len(samples_NC), length))
    ]


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 22_050, 24_000, 44_100, 48_000, 96_000])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("length_ms", [10, 37])
async def test_a_tone_of_any_rate_comes_out_at_its_pitch_and_length(
    rate_hz: int, channels: int, length_ms: int
) -> None:
    sound = tone(1000.0, 2.0, rate_hz, channels)
    heard: list[SoundPacket] = []
    async with running(rate_hz, channels) as fanout:
        fanout.subscribe(AudioCodec.OPUS, heard.append)
        for samples_NC, tag in pieces(sound, rate_hz * length_ms // 1000, rate_hz):
            fanout.publish(samples_NC, tag)
        fanout.finish()
        await fanout.drain()
    played = decoded(heard)
    assert played.shape[1] == channels
    assert abs(len(played) / 48_000 - 2.0) <= 0.03
    for channel in range(channels):
        assert abs(pitch_hz(played[4800:90_000, channel], 48_000) - 1000.0) < 0.5
    body = played[4800:90_000, 0].astype(float)
    # A click would stand out of the difference between neighbours: a tone has a largest slope.
    assert np.abs(np.diff(body)).max() < 1.3 * 2 * np.pi * 1000 / 48_000 * np.abs(body).max()


async def test_packets_follow_each_other_on_the_clock_of_the_sound() -> None:
    heard: list[SoundPacket] = []
    sound = tone(440.0, 1.0, 44_100)
    async with running(44_100) as fanout:
        fanout.subscribe(AudioCodec.OPUS, heard.append)
        for samples_NC, tag in pieces(sound, 7_777, 44_100):
            fanout.publish(samples_NC, tag)
        await fanout.drain()
    assert [packet.pts_us for packet in heard] == [20_000 * index for index in range(len(heard))]
    assert {packet.duration_us for packet in heard} == {20_000}
    assert {packet.samples for packet in heard} == {960}
    assert [packet.discontinuity for packet in heard] == [True] + [False] * (len(heard) - 1)
    assert heard[-1].chunk == len(sound) // 7_777


async def test_raw_samples_are_exactly_those_that_were_put_in() -> None:
    heard: list[SoundPacket] = []
    sound = tone(440.0, 0.55, 16_000, 2)
    async with running(16_000, 2) as fanout:
        fanout.subscribe(AudioCodec.PCM16, heard.append)
        for samples_NC, tag in pieces(sound, 3_000, 16_000):
            fanout.publish(samples_NC, tag)
        await fanout.drain()
    played = np.frombuffer(b"".join(packet.data for packet in heard), "<i2").reshape(-1, 2)
    assert (played == sound).all()
    ends = [packet.pts_us + packet.duration_us for packet in heard]
    assert ends[-1] == 550_000
    assert ends[:-1] == [packet.pts_us for packet in heard[1:]]
    assert max(packet.duration_us for packet in heard) <= 20_000


async def test_every_codec_is_encoded_once_and_who_leaves_hears_no_more() -> None:
    first: list[SoundPacket] = []
    second: list[SoundPacket] = []
    async with running() as fanout:
        gone = fanout.subscribe(AudioCodec.OPUS, first.append)
        fanout.subscribe(AudioCodec.OPUS, second.append)
        fanout.publish(tone(440.0, 0.2), SoundTag(0))
        await fanout.drain()
        gone.close()
        gone.close()
        fanout.publish(tone(440.0, 0.2), SoundTag(200_000))
        await fanout.drain()
        assert fanout.listeners == 1
    assert all(one is other for one, other in zip(first, second, strict=False))
    assert (len(first), len(second)) == (10, 20)


async def test_whoever_comes_later_hears_what_is_said_from_then_on() -> None:
    heard: list[SoundPacket] = []
    async with running() as fanout:
        fanout.publish(tone(440.0, 0.2), SoundTag(0))
        await fanout.drain()
        fanout.subscribe(AudioCodec.OPUS, heard.append)
        fanout.publish(tone(440.0, 0.2), SoundTag(200_000))
        await fanout.drain()
    assert heard[0].pts_us == 200_000


async def test_a_gap_is_said_and_what_was_before_it_is_heard_to_its_end() -> None:
    heard: list[SoundPacket] = []
    async with running() as fanout:
        fanout.subscribe(AudioCodec.OPUS, heard.append)
        fanout.publish(tone(440.0, 0.05), SoundTag(0))
        fanout.publish(tone(440.0, 0.05), SoundTag(300_000))
        await fanout.drain()
    times = [(packet.pts_us, packet.discontinuity) for packet in heard]
    assert times == [
        (0, True),
        (20_000, False),
        (40_000, False),
        (300_000, True),
        (320_000, False),
    ]


async def test_times_never_overlap_even_when_silence_filled_the_last_packet() -> None:
    heard: list[SoundPacket] = []
    async with running() as fanout:
        fanout.subscribe(AudioCodec.OPUS, heard.append)
        fanout.publish(tone(440.0, 0.041), SoundTag(0))
        fanout.publish(tone(440.0, 0.05), SoundTag(50_000))
        await fanout.drain()
    ends = [packet.pts_us + packet.duration_us for packet in heard]
    assert all(end <= packet.pts_us for end, packet in zip(ends, heard[1:], strict=False))


async def test_after_a_flush_nothing_old_is_heard_not_even_the_rest_of_a_packet() -> None:
    heard: list[SoundPacket] = []
    async with running() as fanout:
        fanout.subscribe(AudioCodec.OPUS, heard.append)
        fanout.publish(np.full((1000, 1), 20_000, np.int16), SoundTag(0))
        await fanout.drain()
        fanout.publish(np.full((48_000, 1), 20_000, np.int16), SoundTag(20_833))
        fanout.flush()
        before = len(heard)
        fanout.publish(np.zeros((9_600, 1), np.int16), SoundTag(5_000_000, discontinuity=True))
        await fanout.drain()
    new = heard[before:]
    assert [packet.pts_us for packet in new] == [5_000_000 + 20_000 * each for each in range(10)]
    assert new[0].discontinuity
    assert np.abs(decoded(new)).max() < 100


async def test_when_encoding_falls_behind_the_oldest_gives_way_and_is_counted() -> None:
    heard: list[SoundPacket] = []
    async with running(queue_s=0.5) as fanout:
        fanout.subscribe(AudioCodec.PCM16, heard.append)
        for chunk in range(20):  # no await: the encoding thread is never given any of it
            fanout.publish(tone(440.0, 0.1), SoundTag(chunk * 100_000, chunk=chunk))
        await fanout.drain()
        assert fanout.dropped == 75
    assert [packet.chunk for packet in heard] == [
        chunk for chunk in range(15, 20) for _ in range(5)
    ]
    assert (heard[0].dropped, heard[0].discontinuity) == (75, True)
    assert sum(packet.dropped for packet in heard) == 75


@pytest.mark.parametrize("shape", [(10,), (10, 1), (10, 6)])
async def test_sound_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    fanout = AudioFanout(48_000, 2)
    with pytest.raises(UnsupportedSoundError):
        fanout.publish(np.zeros(shape, np.int16), SoundTag(0))
    with pytest.raises(UnsupportedSoundError):
        fanout.publish(np.zeros((10, 2), np.float32), SoundTag(0))


async def test_an_encoder_that_fails_ends_the_stream_and_says_so() -> None:
    def broken(codec: AudioCodec, shape: SoundShape) -> SoundEncoder:
        raise ValueError("broken")

    fanout = AudioFanout(48_000, 1, open_encoder=broken)
    fanout.subscribe(AudioCodec.OPUS, lambda _: None)
    fanout.publish(tone(440.0, 0.1), SoundTag(0))
    async with asyncio.timeout(LIMIT_S):
        with pytest.raises(EncodeError, match="broken"):
            await fanout.run()
        await fanout.drain()
