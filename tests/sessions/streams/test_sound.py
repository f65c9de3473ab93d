"""A program with sound: over the real pool, with a model that makes a tone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import numpy as np
import pytest
import sounding_model
from listening import heard_opus, pitch_hz
from sounding_model import FRAMES, RATE_HZ

from reverie.config import Deployment
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine
from reverie.media import AudioCodec
from reverie.sessions import LocalSession, NotSamplesError, Role
from reverie.sessions.protocol.events import AnyEvent, SessionInterrupted
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit

LIMIT_S = 30.0
CHUNK_US = round(FRAMES / RATE_HZ * 1e6)


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    models = (ModelOptions(name="sounding", family=sounding_model.LOCATION, sessions=2),)
    deployment = Deployment(pool=PoolOptions(mode="inline", models=models))
    async with Engine.from_deployment(deployment) as running:
        yield running


async def heard(session: LocalSession, seconds: float) -> list[AnyEvent]:
    """Take what comes until so much sound has come."""
    events: list[AnyEvent] = []
    async with asyncio.timeout(LIMIT_S), aclosing(aiter(session.stream())) as stream:
        async for event in stream:
            events.append(event)
            if sum(each.duration_us for each in packets(events)) >= seconds * 1e6:
                return events
    raise AssertionError("the stream ended")


def packets(events: list[AnyEvent], stream: str = "sound") -> list[MediaChunk]:
    return [each for each in events if isinstance(each, MediaChunk) and each.stream == stream]


async def test_a_program_in_this_process_hears_exactly_what_the_model_put_out(
    engine: Engine,
) -> None:
    async with engine.session(parameters={"hz": 440.0}) as session:
        events = await heard(session, 2.0)
        sound = packets(events)
        samples = np.concatenate([session.samples(each) for each in sound])
        with pytest.raises(NotSamplesError):
            session.samples(packets(events, "video")[0])
    [init] = [each for each in events if isinstance(each, MediaInit) and each.stream == "sound"]
    assert (init.kind, init.codec, init.rate_hz, init.channels) == ("audio", "pcm16", 24_000.0, 1)
    expected = 0.5 * 32767 * np.sin(2 * np.pi * 440.0 * np.arange(len(samples)) / 24_000)
    assert np.abs(samples[:, 0] - expected).max() <= 1
    ends = [each.pts_us + each.duration_us for each in sound]
    assert ends[:-1] == [each.pts_us for each in sound[1:]]


async def test_sound_and_pictures_share_one_clock(engine: Engine) -> None:
    async with engine.session(parameters={"short": 300.0}) as session:
        events = await heard(session, 5.0)
    starts: dict[int, dict[str, int]] = {}
    for each in packets(events) + packets(events, "video"):
        starts.setdefault(each.chunk, {}).setdefault(each.stream, each.pts_us)
    both = [start for start in starts.values() if len(start) == 2]
    assert len(both) > 20
    assert max(abs(start["sound"] - start["video"]) for start in both) <= 40_000


async def test_a_client_that_asks_for_opus_gets_packets_of_20_ms(engine: Engine) -> None:
    async with engine.session(parameters={"hz": 1000.0}) as session:
        server_session = engine.store.get(session.id)
        async with LocalSession(server_session, Role.VIEWER, audio=AudioCodec.OPUS) as viewer:
            events = await heard(viewer, 2.0)
    sound = packets(events)
    assert {each.duration_us for each in sound} == {20_000}
    played = heard_opus([each.data for each in sound])
    assert abs(pitch_hz(played[4800:90_000, 0], 48_000) - 1000.0) < 1.0


async def test_a_client_that_asks_for_no_sound_gets_none_and_the_pictures_continue(
    engine: Engine,
) -> None:
    async with engine.session() as session:
        server_session = engine.store.get(session.id)
        async with LocalSession(server_session, Role.VIEWER, audio=None) as viewer:
            events: list[AnyEvent] = []
            async with asyncio.timeout(LIMIT_S), aclosing(aiter(viewer.stream())) as stream:
                async for event in stream:
                    events.append(event)
                    if len(packets(events, "video")) >= 5 * FRAMES:
                        break
    assert not packets(events)


async def test_an_interrupt_silences_what_was_not_heard(engine: Engine) -> None:
    async with engine.session() as session:
        await heard(session, 0.5)
        await session.interrupt()
        events = await heard(session, 1.0)
    cut = next(each for each in events if isinstance(each, SessionInterrupted))
    sound = packets(events[events.index(cut) :])
    assert sound[0].discontinuity
    assert min(each.pts_us for each in sound) >= cut.next_us


async def test_the_sound_ends_with_the_session(engine: Engine) -> None:
    async with engine.session() as session:
        server_session = engine.store.get(session.id)
        events: list[AnyEvent] = []
        async with asyncio.timeout(LIMIT_S):
            async for event in session.stream():
                events.append(event)
                if len(packets(events)) == 20:
                    server_session.end("closed")
    completed = [each.stream for each in events if each.type == "media.complete"]
    assert sorted(completed) == ["sound", "video"]
    assert events[-1].type == "session.closed"


async def test_a_program_without_pictures_is_paced_by_its_listeners() -> None:
    location = sounding_model.LOCATION.replace("SoundingFamily", "heard_only")
    models = (ModelOptions(name="heard", family=location, sessions=2),)
    deployment = Deployment(pool=PoolOptions(mode="inline", models=models))
    async with Engine.from_deployment(deployment) as engine, engine.session() as session:
        events = await heard(session, 2.0)
        server_session = engine.store.get(session.id)
        async with LocalSession(server_session, Role.DRIVER, audio=AudioCodec.OPUS) as driver:
            events += await heard(driver, 2.0)
    ends = [each.chunk for each in packets(events) if each.last]
    assert ends == sorted(set(ends))
    assert len(ends) >= 15
