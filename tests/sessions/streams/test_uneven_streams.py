"""A program whose pictures and sound come by loops of their own: over the real pool, in process."""

from contextlib import AbstractAsyncContextManager

import pytest
import uneven_model
from session_suite import StreamViewer, looking

from reverie.config import Deployment
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine
from reverie.sessions.protocol.events import SessionInterrupted
from reverie.sessions.protocol.media_events import MediaChunk

SECOND = 1_000_000


def serving(make: str) -> AbstractAsyncContextManager[Engine]:
    location = uneven_model.LOCATION.replace("UnevenFamily", make)
    models = (ModelOptions(name="uneven", family=location, sessions=2),)
    deployment = Deployment(pool=PoolOptions(mode="inline", models=models))
    return Engine.from_deployment(deployment)


def end_us(screen: StreamViewer, stream: str, since: int = 0) -> int:
    """Return up to where a stream has come."""
    chunks = [each for each in screen.events[since:] if isinstance(each, MediaChunk)]
    ends = [each.pts_us + each.duration_us for each in chunks if each.stream == stream]
    return max(ends, default=0)


async def until(screen: StreamViewer, seconds: float) -> None:
    """Take events until pictures and sound have come so far."""
    while min(end_us(screen, "video"), end_us(screen, "sound")) < seconds * SECOND:
        await screen.take()


@pytest.mark.parametrize("make", ["UnevenFamily", "short_pictures"])
async def test_pictures_and_sound_stay_together(make: str) -> None:
    async with serving(make) as engine, engine.session() as session, looking(session) as screen:
        for seconds in (4, 8, 12):
            await until(screen, seconds)
            apart_us = end_us(screen, "video") - end_us(screen, "sound")
            assert abs(apart_us) <= 3 * 2 * SECOND  # a chunk on the way, one made, one begun


@pytest.mark.parametrize("make", ["UnevenFamily", "short_pictures"])
async def test_both_go_on_together_after_an_interrupt_and_are_still_paced(make: str) -> None:
    async with serving(make) as engine, engine.session() as session, looking(session) as screen:
        for seconds in (5, 15):  # the second finds numbers that the first has outlawed
            await until(screen, seconds)
            await session.interrupt()
            told = await screen.until("session.interrupted")
            assert isinstance(told, SessionInterrupted)
            since = len(screen.events)
            while not (end_us(screen, "video", since) and end_us(screen, "sound", since)):
                await screen.take()
            chunks = [each for each in screen.events[since:] if isinstance(each, MediaChunk)]
            firsts: dict[str, MediaChunk] = {}
            for each in chunks:
                firsts.setdefault(each.stream, each)
            assert {each.pts_us for each in firsts.values()} == {told.next_us}
            assert all(each.discontinuity for each in firsts.values())
        await until(screen, 25)


async def test_a_rewind_takes_both_back() -> None:
    async with (
        serving("UnevenFamily") as engine,
        engine.session() as session,
        looking(session) as screen,
    ):
        await until(screen, 9)
        await session.rewind(1)
        told = await screen.until("session.interrupted")
        assert isinstance(told, SessionInterrupted)
        assert told.chunk == 1
        since = len(screen.events)
        while not (end_us(screen, "video", since) and end_us(screen, "sound", since)):
            await screen.take()
        chunks = [each for each in screen.events[since:] if isinstance(each, MediaChunk)]
        picture = next(each for each in chunks if each.stream == "video")
        sound = next(each for each in chunks if each.stream == "sound")
        assert int(session.picture(picture).flat[0]) == 2  # chunks before it
        assert int(session.samples(sound).flat[0]) == 10
        assert picture.pts_us == sound.pts_us == told.next_us
