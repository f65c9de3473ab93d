"""The hard cases over real WebSockets, by way of the Python client."""

import pytest
from case_rig import OpenService, remote_cases
from case_suite import CaseSuite
from rtc_rig import server_rig
from session_suite import looking
from stub_model import prompt_mark

from reverie.rtc import ServerOptions, connect
from reverie.sessions import CommandError, SessionEndedError, SessionLimits


class TestRemoteCases(CaseSuite):
    """The suite, on `RemoteSession`."""

    @pytest.fixture
    def open_service(self) -> OpenService:
        return remote_cases


@pytest.mark.parametrize("factor", [1, 10])
async def test_c26_a_command_over_the_limit_is_refused_and_the_stream_continues(
    factor: int,
) -> None:
    limit = 2**16
    options = ServerOptions(message_bytes=limit)
    async with (
        server_rig(server=options, limits=SessionLimits(prompt_chars=15 * limit)) as rig,
        connect(rig.url, prompt="a lake") as session,
        looking(session) as screen,
    ):
        await screen.chunk()
        await screen.applied(await session.push_text("x" * (limit - 200)))
        with pytest.raises(CommandError) as caught:
            await session.push_text("y" * (factor * limit + 1))
        assert caught.value.code == "too_large"
        assert str(limit) in caught.value.message
        await screen.chunk()
        frame = (await screen.chunk())[-1]
        assert frame.stamp.prompt == prompt_mark("x" * (limit - 200))


async def test_c26_a_message_over_the_limit_all_the_same_leaves_a_session_to_come_back_to() -> None:
    options = ServerOptions(message_bytes=2**16)
    async with server_rig(server=options, limits=SessionLimits(prompt_chars=2**18)) as rig:
        opened = await rig.open(prompt="a lake")
        id, token = opened["id"], opened["token"]
        async with connect(rig.url, session=id, token=token) as session:
            session._message_bytes = 0  # as a client does that looks at no limit
            with pytest.raises(SessionEndedError) as caught:
                await session.push_text("x" * 2**17)
            assert caught.value.reason == "too_large"
        async with (
            connect(rig.url, session=id, token=token) as session,
            looking(session) as screen,
        ):
            assert await screen.chunk()
