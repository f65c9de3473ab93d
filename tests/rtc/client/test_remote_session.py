"""The session interface over the network, and what only a network can do to it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
from rtc_rig import LIMIT_S, ServerRig, server_rig
from session_suite import SessionSuite, looking
from waiting import until

from reverie.rtc import ConnectionLostError, RemoteSession, ServerRefusedError, connect
from reverie.sessions import BadRequestError, CommandError, Session, SessionEndedError
from reverie.sessions.protocol.events import Error


class RemoteService:
    """Sessions of a server, by way of its sockets."""

    def __init__(self, rig: ServerRig) -> None:
        self.rig = rig

    def session(
        self,
        *,
        prompt: str = "",
        seed: int | None = None,
        parameters: dict[str, float] | None = None,
    ) -> AbstractAsyncContextManager[Session]:
        return connect(self.rig.url, prompt=prompt, seed=seed, parameters=parameters)


@pytest.fixture
async def service() -> AsyncIterator[RemoteService]:
    async with server_rig(sessions=3) as rig:
        yield RemoteService(rig)


class TestRemoteSession(SessionSuite):
    """The suite, on `RemoteSession`."""


def drop(session: RemoteSession) -> None:
    """Break the connection under a session."""
    socket = session._link._socket
    assert socket is not None
    socket.transport.abort()


async def test_a_broken_connection_comes_back_to_the_same_world(rig: ServerRig) -> None:
    changes: list[bool] = []
    async with connect(rig.url, prompt="a lake") as session, looking(session) as screen:
        session.connection_changed = changes.append
        before = (await screen.chunk())[-1]
        for _ in range(3):
            drop(session)
            await screen.until("session.attached")
            await screen.until("media.init")
            after = (await screen.chunk())[-1]
            assert after.stamp.session == before.stamp.session
            assert before.stamp.chunk <= after.stamp.chunk <= before.stamp.chunk + 3
            before = after
        await session.push_text("still here")
        assert changes == [False, True] * 3
    await until(lambda: rig.busy == 0)


async def test_a_command_on_its_way_when_the_line_breaks_is_not_left_waiting(
    rig: ServerRig,
) -> None:
    async with connect(rig.url, parameters={"step_ms": 300}) as session:
        async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(outcome(session))
            while not session._answers:
                await asyncio.sleep(0)
            drop(session)
        assert asked.result() == "lost"


async def outcome(session: Session) -> str:
    try:
        await session.pause()
    except ConnectionLostError:
        return "lost"
    return "done"


async def test_a_replaced_driver_learns_why_and_does_not_fight(rig: ServerRig) -> None:
    async with connect(rig.url) as first, looking(first) as screen:
        await screen.chunk()
        async with connect(rig.url, session=first.id, token=first.token) as second:
            events = await screen.rest()
            assert isinstance(events[-1], Error)
            assert events[-1].code == "replaced"
            with pytest.raises(SessionEndedError) as caught:
                await first.push_text("mine")
            assert caught.value.reason == "replaced"
            async with looking(second) as other:
                await other.chunk()
        assert len(rig.store) == 1  # a client that attached leaves the session as it is


async def test_a_viewer_watches_and_is_refused_what_drives(rig: ServerRig) -> None:
    opened = await rig.open()
    token = opened["watch_token"]
    async with (
        rig.client(opened) as driver,
        connect(rig.url, session=opened["id"], token=token, role="viewer") as session,
        looking(session) as screen,
    ):
        await driver.chunk(1)
        await screen.frame()
        with pytest.raises(CommandError) as caught:
            await session.push_text("mine")
        assert caught.value.code == "read_only"
    assert rig.store.get(opened["id"]).view.viewers == 0


async def test_what_cannot_be_opened_raises_what_it_would_in_this_process(rig: ServerRig) -> None:
    with pytest.raises(BadRequestError) as caught:
        async with connect(rig.url, parameters={"nope": 1}):
            pass
    assert caught.value.field == "parameters.nope"
    with pytest.raises(SessionEndedError) as ended:
        async with connect(rig.url, session="nothing", token="t"):
            pass
    assert ended.value.reason == "no_such_session"
    with pytest.raises(ValueError, match="token"):
        async with connect(rig.url, session="nothing"):
            pass


async def test_what_the_block_raises_comes_out_as_it_is(rig: ServerRig) -> None:
    with pytest.raises(ZeroDivisionError):
        async with connect(rig.url):
            raise ZeroDivisionError
    await until(lambda: rig.busy == 0)


async def test_a_server_that_is_full_says_when_to_come_back() -> None:
    async with server_rig(sessions=1, waiting_line=0) as rig, connect(rig.url):
        with pytest.raises(ServerRefusedError) as caught:
            async with connect(rig.url):
                pass
        assert caught.value.code == "too_many_waiting_line"
        assert caught.value.retry_after_s


async def test_a_server_that_is_not_there_cannot_be_reached() -> None:
    with pytest.raises(ConnectionLostError):
        async with connect("http://127.0.0.1:9"):
            pass


async def test_a_server_that_stays_away_ends_the_stream_with_the_reason() -> None:
    async with server_rig() as rig:
        opened = await rig.open()
        session, token = opened["id"], opened["token"]
        async with (
            connect(rig.url, session=session, token=token, give_up_s=0.2) as remote,
            looking(remote) as screen,
        ):
            await screen.chunk()
            await rig.context.drain()
            events = await screen.rest()
            assert events[-1].type == "session.closed"
            assert events[-1].reason == "shutdown"
