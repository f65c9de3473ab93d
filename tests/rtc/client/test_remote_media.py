"""What is pushed, over the network."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
from media_suite import ECHO, MediaSuite
from rtc_rig import ServerRig, server_rig

from reverie.rtc import connect
from reverie.sessions import Session, SessionLimits


class RemoteService:
    """Sessions of a server, by way of its sockets."""

    def __init__(self, rig: ServerRig) -> None:
        self.rig = rig

    def session(self) -> AbstractAsyncContextManager[Session]:
        return connect(self.rig.url)


@pytest.fixture
async def service() -> AsyncIterator[RemoteService]:
    async with server_rig(family=ECHO, limits=SessionLimits(input_gap_s=0.3)) as rig:
        yield RemoteService(rig)


class TestRemoteMedia(MediaSuite):
    """The suite, on `RemoteSession`."""
