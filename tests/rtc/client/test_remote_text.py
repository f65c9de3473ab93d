"""Programs that talk, over the network."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
import talking_stub
from rtc_rig import House, house
from text_suite import TextSuite

from reverie.rtc import connect
from reverie.sessions import Session


class RemoteService:
    """Sessions of a server, by way of its sockets."""

    def __init__(self, home: House) -> None:
        self.home = home

    def session(
        self,
        *,
        program: str = "",
        prompt: str = "",
        parameters: dict[str, float] | None = None,
    ) -> AbstractAsyncContextManager[Session]:
        return connect(self.home.url, program=program, prompt=prompt, parameters=parameters)


@pytest.fixture
async def service() -> AsyncIterator[RemoteService]:
    async with house(sessions=3, family=talking_stub.LOCATION) as home:
        yield RemoteService(home)


class TestRemoteText(TextSuite):
    """The suite, on `RemoteSession`."""
