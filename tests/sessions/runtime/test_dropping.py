"""Connections that break at the wrong moment, on the real driver: one loop, nothing lost."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from session_rig import Client
from stub_model import LOCATION, LOG_VARIABLE, Stamp, read_log, read_stamp
from waiting import until

from reverie.config import Deployment
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine
from reverie.media import Codec
from reverie.sessions.attachments.attachment import AttachOptions, Role
from reverie.sessions.client.decode import to_picture
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit
from reverie.sessions.runtime.server_session import ServerSession
from reverie.sessions.runtime.session_request import SessionRequest


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "steps.log"
    monkeypatch.setenv(LOG_VARIABLE, str(path))
    return path


@pytest.fixture
async def engine(log: Path) -> AsyncIterator[Engine]:
    models = (ModelOptions(name="stub", family=LOCATION, sessions=2),)
    deployment = Deployment(pool=PoolOptions(mode="inline", models=models))
    async with Engine.from_deployment(deployment) as engine:
        yield engine


async def opened(engine: Engine, prompt: str = "a lake", **parameters: float) -> ServerSession:
    request = SessionRequest(model="stub", prompt=prompt, seed=7, parameters=parameters)
    return (await engine.store.create(request)).session


def attach(session: ServerSession, codec: Codec = Codec.RGB24) -> Client:
    return Client(session.attach(Role.DRIVER, AttachOptions(codec=codec)))


def stamps(client: Client) -> list[Stamp]:
    init: MediaInit | None = None
    found = []
    for event in client.events:
        if isinstance(event, MediaInit):
            init = event
        elif isinstance(event, MediaChunk):
            assert init is not None, "a frame came before its format"
            found.append(read_stamp(to_picture(event, init)))
    return found


async def test_a_client_that_reconnects_at_once_continues_where_the_session_was(
    engine: Engine, log: Path
) -> None:
    session = await opened(engine, step_ms=40)
    first = attach(session)
    for _ in range(2):
        await first.chunk()
    units = len(read_log(log))
    await until(lambda: len(read_log(log)) > units)
    first.attachment.detach()
    second = attach(session)
    for _ in range(3):
        await second.chunk()
    seen = list(
        dict.fromkeys(stamp.chunk for client in (first, second) for stamp in stamps(client))
    )
    assert seen == list(range(len(seen))), "a chunk was lost, or came twice"
    _assert_one_loop(log, session.id)


async def test_twenty_reconnects_at_random_make_one_loop_and_always_a_picture(
    engine: Engine, log: Path
) -> None:
    session = await opened(engine, step_ms=2)
    dice = random.Random(7)
    for turn in range(20):
        client = attach(session, list(Codec)[turn % 3])
        await client.until("media.init")
        frame = await client.until("media.chunk")
        assert isinstance(frame, MediaChunk)
        assert frame.key, "a newcomer cannot decode that"
        if dice.random() < 0.7:
            await client.chunk()
        client.attachment.detach()
    _assert_one_loop(log, session.id)


async def test_of_two_drivers_that_attach_at_the_same_moment_one_is_told_of_the_other(
    engine: Engine,
) -> None:
    session = await opened(engine)
    one, two = attach(session), attach(session)
    assert await one.until_end() == "replaced"
    assert await two.chunk()


async def test_without_a_client_generation_stops_after_its_chunk(engine: Engine, log: Path) -> None:
    session = await opened(engine)
    client = attach(session)
    await client.chunk()
    client.attachment.detach()
    await _quiet(log)
    steps = len(read_log(log))
    await asyncio.sleep(0.1)
    assert len(read_log(log)) == steps
    again = attach(session)
    await again.chunk()
    await again.chunk()
    assert len(read_log(log)) > steps


async def test_keys_held_by_a_lost_client_are_released(engine: Engine) -> None:
    session = await opened(engine)
    first = attach(session)
    await first.ask("push_action", action={"move": "left"}, edge="press")
    while "control.applied" not in first.types():
        await first.chunk()
    first.attachment.detach()
    second = attach(session)
    for _ in range(4):
        await second.chunk()
    assert stamps(second)[-1].held == frozenset()


async def test_an_aborted_session_changes_nothing_for_the_next(engine: Engine) -> None:
    async def pixels() -> list[bytes]:
        session = await opened(engine)
        client = attach(session)
        frames = [frame.data for _ in range(3) for frame in await client.chunk()]
        session.end("closed")
        await session.gone()
        return frames

    # The stamps name the session, so its tint alone is compared: all that the world went through.
    def tints(frames: list[bytes]) -> list[set[bytes]]:
        return [{frame[i : i + 3] for i in range(0, len(frame), 3)} for frame in frames]

    alone = tints(await pixels())
    for moment in ("before", "mid-step", "twice", "after"):
        session = await opened(engine, step_ms=20.0 if moment == "mid-step" else 0.0)
        client = attach(session)
        if moment != "before":
            await client.chunk()
        session.end("closed")
        if moment == "twice":
            session.end("closed")
        if moment == "after":
            await session.gone()
        assert tints(await pixels()) == alone, moment


async def _quiet(log: Path) -> None:
    steps = -1
    while steps != len(read_log(log)):
        steps = len(read_log(log))
        await asyncio.sleep(0.05)


def _assert_one_loop(log: Path, session: str) -> None:
    """Units of one session never overlap, and its chunks come one after the other."""
    lines = [line for line in read_log(log) if line.session == session]
    events = [line.event for line in lines if line.event in ("start", "end")]
    assert events == ["start", "end"] * (len(events) // 2) + ["start"] * (len(events) % 2)
    chunks = [line.chunk for line in lines if line.event == "start"]
    assert chunks == sorted(chunks)
