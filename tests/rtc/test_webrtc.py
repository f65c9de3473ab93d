"""The same session over WebRTC, with aiortc at the other end, in a network of its own."""

import pytest
from net_namespace import namespace_or_skip
from rtc_peer import watching
from rtc_rig import House, house


@pytest.fixture(autouse=True)
def network():
    with namespace_or_skip() as namespace, namespace.entered():
        yield namespace


@pytest.mark.parametrize("codec", ["vp8", "h264"])
async def test_a_driver_sees_pictures_and_hears_events(codec: str) -> None:
    async with house() as home:
        opened = await home.open()
        async with watching(home.http, opened, codec=codec) as client:
            attached = await client.hears("session.attached")
            assert attached.role == "driver"
            await client.shows(3)
            print([ (c.index,c.pts_us,c.rtp_timestamp,c.key,c.dropped) for c in client.chunks][:6])
            print([f.pts for f in client.frames])
