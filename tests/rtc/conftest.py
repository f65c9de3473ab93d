"""A running server for the tests of rtc."""

from collections.abc import AsyncIterator

import pytest
from rtc_rig import ServerRig, server_rig


@pytest.fixture
async def rig() -> AsyncIterator[ServerRig]:
    """Run the whole server over the stub model on a thread."""
    async with server_rig() as running:
        yield running
