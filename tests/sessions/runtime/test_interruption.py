"""Cuts: no old frame follows `session.interrupted`, and no new one is lost."""

import asyncio

from fake_pool import FRAMES
from session_rig import assert_well_formed, session_rig
from waiting import until

from reverie.gpu_pool.wire.session_messages import Interrupt
from reverie.sessions.protocol.events import RequestAccepted, SessionInterrupted
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit


async def test_after_the_event_of_an_interrupt_no_old_frame_comes() -> None:
    async with session_rig() as rig:
        _, lease, client = await rig.driven()
        lease.put_out_chunk()
        await client.chunk()
        lease.put_out_chunk()  # chunk 1 waits in the outbox, unseen
        lease.answering.clear()
        client.submit("interrupt")
        await until(lambda: lease.asked)
        lease.put_out_chunk()  # chunk 2 is on its way when the interrupt is
        await until(lambda: len(client.attachment.outbox) >= FRAMES)
        lease.answering.set()
        await until(lambda: len(client.attachment.outbox) < FRAMES)
        word = await client.until("session.interrupted")
        assert isinstance(word, SessionInterrupted)
        assert client.types().count("media.chunk") == FRAMES, "what waited was not dropped"
        lease.put_out_chunk()
        frames = await client.chunk()
        assert [frame.chunk for frame in frames] == [3] * FRAMES
        assert frames[0].pts_us == word.next_us
        assert frames[0].discontinuity
        assert (word.reason, word.chunk, word.seen_us) == ("interrupt", 0, 150_000)
        assert lease.asked == [Interrupt(0, lease.session, 0, seen_of="world_model")]
        assert_well_formed(client)


async def test_new_frames_that_overtake_the_answer_still_follow_its_event() -> None:
    async with session_rig() as rig:
        _, lease, client = await rig.driven()
        lease.put_out_chunk()
        await client.chunk()
        lease.delivering.clear()
        client.submit("interrupt")
        await until(lambda: lease.asked)
        lease.put_out_chunk()
        await asyncio.sleep(0.02)
        lease.delivering.set()
        word = await client.until("session.interrupted")
        assert client.types().count("media.chunk") == FRAMES
        frames = await client.chunk()
        assert isinstance(word, SessionInterrupted)
        assert frames[0].pts_us == word.next_us


async def test_a_client_that_attaches_right_after_a_cut_sees_nothing_old_either() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        lease.put_out_chunk()
        await client.chunk()
        lease.answering.clear()
        client.submit("interrupt")
        await until(lambda: lease.asked)
        lease.put_out_chunk()
        lease.answering.set()
        word = await client.until("session.interrupted")
        late = rig.attach(session)
        await asyncio.sleep(0.05)  # time enough to be shown a picture that is none any more
        lease.put_out_chunk()
        frame = await late.until("media.chunk")
        assert isinstance(word, SessionInterrupted)
        assert isinstance(frame, MediaChunk)
        assert frame.pts_us >= word.next_us


async def test_an_interrupt_before_anything_was_seen_goes_back_to_the_start() -> None:
    async with session_rig() as rig:
        _, lease, client = await rig.driven()
        answer = await client.ask("interrupt")
        assert isinstance(answer, RequestAccepted)
        assert lease.asked == [Interrupt(0, lease.session, None, seen_of="world_model")]


async def test_reset_takes_a_new_seed_and_tells_it() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        lease.put_out_chunk()
        await client.chunk()
        await client.ask("reset", seed=123)
        lease.put_out_chunk()
        init = await client.until("media.init")
        assert isinstance(init, MediaInit)
        assert (init.seed, session.view.seed) == (123, 123)
