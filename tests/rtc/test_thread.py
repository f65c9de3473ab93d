"""The first thread: a real WebSocket sees frames of a model, through everything between."""

from rtc_rig import server_rig

from reverie.sessions.protocol.events import SessionAttached
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit


async def test_a_client_sees_the_frames_of_its_session() -> None:
    async with server_rig() as rig:
        opened = await rig.open(prompt="a frozen lake", seed=7)
        async with rig.client(opened) as client:
            await client.chunk(2)
            assert isinstance(client.events[0], SessionAttached)
            init = next(event for event in client.events if isinstance(event, MediaInit))
            frames = [event for event in client.events if isinstance(event, MediaChunk)]
            assert (init.width, init.height, init.seed) == (64, 64, 7)
            assert {len(frame.data) for frame in frames} == {64 * 64 * 3}
            assert [frame.index for frame in frames] == list(range(len(frames)))
            sequence = [event.sequence for event in client.events]
            assert sequence == list(range(len(sequence)))
            assert (await client.ask(type="close")).type == "request.accepted"
            assert await client.closed() == (1000, "closed")
        assert [event.type for event in client.events[-2:]] == ["media.complete", "session.closed"]
