"""What is pushed, over the network."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
from media_suite import ECHO, MediaSuite
from rtc_rig import House, house

from reverie.rtc import connect
from reverie.sessions import Session, SessionLimits


class RemoteService:
    """Sessions of a server, by way of its sockets."""

    def __init__(self, home: House) -> None:
        self.home = home

    def session(self) -> AbstractAsyncContextManager[Session]:
        return connect(self.home.url)


@pytest.fixture
async def service() -> AsyncIterator[RemoteService]:
    async with house(family=ECHO, limits=SessionLimits(input_gap_s=0.3)) as home:
        yield RemoteService(home)


class TestRemoteMedia(MediaSuite):
    """The suite, on `RemoteSession`."""
