"""A real `reverie serve` and its worker that can write nowhere."""

from pathlib import Path

import pytest
from rtc_rig import WireClient
from rtc_serve_process import serve_process
from websockets.asyncio.client import connect

pytestmark = pytest.mark.timeout(150)
MODULES = Path(__file__).parents[1] / "support" / "read_only"


async def test_a_server_that_records_nothing_needs_no_place_to_write_to(tmp_path: Path) -> None:
    nothing = {"enabled": False}
    async with serve_process(tmp_path, modules=MODULES, recordings=nothing) as server:
        opened = await server.open()
        async with connect(server.socket_url(opened["id"]), proxy=None) as socket:
            client = WireClient(socket)
            await client.hello(opened["token"], codecs=["h264"])
            await client.chunk(1)


async def test_one_that_would_record_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="the server has ended"):
        async with serve_process(tmp_path, modules=MODULES):
            pass
