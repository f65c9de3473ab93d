"""A running server for the tests of this room."""

from collections.abc import AsyncIterator

import pytest
from rtc_rig import House, house


@pytest.fixture
async def home() -> AsyncIterator[House]:
    """Run the whole server over the stub model on a thread."""
    async with house() as running:
        yield running
