"""Consumers at their own speed, interrupts in between: order and numbers hold for every client."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest
from session_rig import Client
from session_suite import assert_well_formed
from stub_model import LOCATION, prompt_mark, read_stamp, session_mark
from waiting import until

from reverie.config import Deployment
from reverie.engine.inputs import OPENING
from reverie.gpu_pool.wire.options import ModelOptions, PoolOptions
from reverie.host import Engine
from reverie.media import Codec
from reverie.sessions.attachments.attachment import AttachOptions, Role
from reverie.sessions.client.decode import to_picture
from reverie.sessions.protocol.events import (
    AnyEvent,
    ControlApplied,
    ControlSuperseded,
    Error,
    RequestAccepted,
    SessionInterrupted,
)
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit
from reverie.sessions.runtime.server_session import ServerSession
from reverie.sessions.runtime.session_request import SessionRequest


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    models = (ModelOptions(name="stub", family=LOCATION, sessions=3),)
    async with Engine.from_deployment(
        Deployment(pool=PoolOptions(mode="inline", models=models))
    ) as engine:
        yield engine


async def opened(engine: Engine, prompt: str) -> ServerSession:
    return (await engine.store.create(SessionRequest(model="stub", prompt=prompt))).session


async def dawdle(client: Client, dice: random.Random, chunks: int, interrupts: bool) -> None:
    """Watch so many chunks, pausing at random, and interrupt now and then."""
    for _ in range(chunks):
        await client.chunk()
        if dice.random() < 0.3:
            await asyncio.sleep(dice.random() * 0.01)
        if interrupts and dice.random() < 0.2:
            client.submit("interrupt")


@pytest.mark.parametrize("seed", range(2))
async def test_slow_consumers_and_interrupts_never_mix_up_what_is_shown(
    engine: Engine, seed: int
) -> None:
    dice = random.Random(seed)
    sessions = [await opened(engine, f"prompt {number}") for number in range(3)]
    clients = [Client(each.attach(Role.DRIVER, AttachOptions())) for each in sessions]
    viewers = [
        Client(each.attach(Role.VIEWER, AttachOptions(codec=Codec.JPEG))) for each in sessions
    ]
    async with asyncio.TaskGroup() as tasks:
        for number, client in enumerate(clients):
            tasks.create_task(dawdle(client, dice, 40, interrupts=number > 0))
    for session in sessions:
        session.end("closed")
    for client in (*clients, *viewers):
        await client.until_end()
        assert_well_formed(client.events)
        assert_nothing_old_after_a_cut(client.events)
        # A viewer who took nothing may have had every frame cut; one that was told of a stream was
        # told of its end.
        told = client in clients or "media.init" in client.types()
        ending = ["media.complete", "session.closed"] if told else ["session.closed"]
        assert client.types()[-len(ending) :] == ending
    for number, (session, client) in enumerate(zip(sessions, clients, strict=True)):
        assert_shows_only(client.events, session.id, f"prompt {number}")


async def test_2000_updates_at_once_are_bounded_and_each_has_its_receipt(engine: Engine) -> None:
    session = await opened(engine, "a lake")
    client = Client(session.attach(Role.DRIVER, AttachOptions()))
    await client.chunk()
    ids = []
    for number in range(2000):
        ids.append(client.submit("update", parameters={"brightness": number / 2000}))
        if number % 16 == 15:
            await asyncio.sleep(0)  # as a transport does
    await until(lambda: session.view.parameters[-1].value == 1999 / 2000)
    while ids[-1] not in (fates := _fates(client.events)):
        await client.chunk()
    assert set(fates) == set(ids)
    assert sum(fate == "control.applied" for fate in fates.values()) < 50
    answers = [event for event in client.events if isinstance(event, RequestAccepted)]
    assert len(answers) == 2000
    assert client.types().count("session.updated") < 40


def _fates(events: list[AnyEvent]) -> dict[str, str]:
    return {
        event.control: event.type
        for event in events
        if isinstance(event, ControlApplied | ControlSuperseded) and event.control != OPENING
    }


def assert_nothing_old_after_a_cut(events: list[AnyEvent]) -> None:
    next_us = 0
    for event in events:
        if isinstance(event, SessionInterrupted):
            next_us = event.next_us
        elif isinstance(event, MediaChunk):
            assert event.pts_us >= next_us, "an old frame came after the word of the cut"
        assert not (isinstance(event, Error) and event.code != "closed")


def assert_shows_only(events: list[AnyEvent], session: str, prompt: str) -> None:
    init: MediaInit | None = None
    for event in events:
        if isinstance(event, MediaInit):
            init = event
        elif isinstance(event, MediaChunk):
            assert init is not None
            stamp = read_stamp(to_picture(event, init))
            assert (stamp.session, stamp.prompt) == (session_mark(session), prompt_mark(prompt))
            assert stamp.frame == event.frame
