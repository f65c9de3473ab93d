"""Programs that talk, over the network."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
import talking_stub
from rtc_rig import ServerRig, server_rig
from text_suite import TextSuite

from reverie.rtc import connect
from reverie.sessions import Session


class RemoteService:
    """Sessions of a server, by way of its sockets."""

    def __init__(self, rig: ServerRig) -> None:
        self.rig = rig

    def session(
        self,
        *,
        program: str = "",
        prompt: str = "",
        parameters: dict[str, float] | None = None,
    ) -> AbstractAsyncContextManager[Session]:
        return connect(self.rig.url, program=program, prompt=prompt, parameters=parameters)


@pytest.fixture
async def service() -> AsyncIterator[RemoteService]:
    async with server_rig(sessions=3, family=talking_stub.LOCATION) as rig:
        yield RemoteService(rig)


class TestRemoteText(TextSuite):
    """The suite, on `RemoteSession`."""
