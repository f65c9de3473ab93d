"""Slow, idle and absent clients are ended, and no others."""

import asyncio

from fake_clock import FakeClock
from fake_pool import FRAMES
from session_rig import assert_well_formed, session_rig
from waiting import until

from reverie.media import Codec
from reverie.sessions.attachments.attachment import Role
from reverie.sessions.protocol.events import Error
from reverie.sessions.protocol.media_events import MediaChunk
from reverie.sessions.state.limits import SessionLimits


async def test_a_slow_viewer_loses_frames_is_ended_and_does_not_disturb_others() -> None:
    clock, limits = FakeClock(), SessionLimits(outbox_frames=8, stall_s=5.0)
    async with session_rig(limits, clock) as rig:
        session, lease, driver = await rig.driven()
        slow = rig.attach(session, Role.VIEWER)
        for _ in range(10):
            lease.put_out_chunk()
            await driver.chunk()
        assert len(slow.attachment.outbox) < 8 + 8
        assert slow.attachment.outbox.skipped > 20
        await until(lambda: clock.sleepers)
        clock.advance(4.9)
        await asyncio.sleep(0.01)
        assert slow.attachment.ended is None
        clock.advance(0.2)
        await until(lambda: slow.attachment.ended)
        assert await slow.until_end() == "slow_viewer"
        assert isinstance(slow.events[-1], Error)
        assert slow.events[-1].code == "slow_viewer"
        assert_well_formed(slow)
        lease.put_out_chunk()
        assert await driver.chunk()
        chunks = [event for event in driver.events if isinstance(event, MediaChunk)]
        assert len(chunks) == 11 * FRAMES
        assert not any(chunk.dropped for chunk in chunks)


async def test_a_slow_viewer_who_reads_again_gets_fresh_pictures() -> None:
    async with session_rig(SessionLimits(outbox_frames=8)) as rig:
        session, lease, driver = await rig.driven()
        slow = rig.attach(session, Role.VIEWER, Codec.H264)
        for _ in range(10):
            lease.put_out_chunk()
            await driver.chunk()
        frame = await slow.until("media.chunk")
        assert isinstance(frame, MediaChunk)
        assert frame.key
        assert frame.chunk >= 7
        assert frame.dropped > 20


async def test_a_client_that_does_nothing_and_is_shown_nothing_is_ended() -> None:
    clock = FakeClock()
    async with session_rig(SessionLimits(idle_s=5, stall_s=60, grace_s=3), clock) as rig:
        session, _, client = await rig.driven()
        await client.until("session.attached")
        for _ in range(2):
            await until(lambda: clock.sleepers)
            clock.advance(4)
            await asyncio.sleep(0.01)
            if not client.attachment.ended:
                await client.ask("release_all")
        assert client.attachment.ended is None
        clock.advance(5)
        assert await client.until_end() == "idle"
        await until(lambda: clock.sleepers)
        clock.advance(3)
        await session.gone()
        assert session.state.reason == "abandoned"


async def test_a_client_that_only_watches_a_running_generation_is_not_ended() -> None:
    clock = FakeClock()
    async with session_rig(SessionLimits(idle_s=5, stall_s=60), clock) as rig:
        session, lease, _ = await rig.driven()
        viewer = rig.attach(session, Role.VIEWER)
        for _ in range(5):
            clock.advance(3)
            lease.put_out_chunk()
            while (await viewer.until("media.chunk")).type != "media.chunk":
                pass
            await asyncio.sleep(0.01)
        assert viewer.attachment.ended is None


async def test_a_session_without_a_client_is_closed_after_its_grace_time() -> None:
    clock = FakeClock()
    async with session_rig(SessionLimits(grace_s=30), clock) as rig:
        session, _, client = await rig.driven()
        client.attachment.detach()
        await until(lambda: clock.sleepers)
        clock.advance(29)
        await asyncio.sleep(0.01)
        client = rig.attach(session)
        clock.advance(29)
        await asyncio.sleep(0.01)
        assert not session.state.over
        client.attachment.detach()
        await until(lambda: clock.sleepers)
        clock.advance(31)
        await session.gone()
        assert rig.pool.free == 2


async def test_a_session_that_never_had_a_client_is_closed_too() -> None:
    clock = FakeClock()
    async with session_rig(SessionLimits(grace_s=30), clock) as rig:
        session = (await rig.open()).session
        await until(lambda: clock.sleepers)
        clock.advance(31)
        await session.gone()
        assert session.state.reason == "abandoned"
