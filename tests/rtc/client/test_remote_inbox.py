"""What a client keeps of what it has heard."""

import asyncio
from contextlib import suppress

from reverie.rtc.client.remote_inbox import WAITING_EVENTS, RemoteInbox
from reverie.sessions import AttachmentEndedError
from reverie.sessions.protocol.events import AnyEvent, SessionClosed, SessionInterrupted
from reverie.sessions.protocol.media_events import MediaChunk, MediaComplete


def frame(number: int) -> MediaChunk:
    return MediaChunk(
        stream="video",
        index=number,
        pts_us=number * 100,
        duration_us=100,
        key=True,
        chunk=number,
        frame=0,
        last=True,
        step=number,
        size_bytes=5,
    )


def cut(next_us: int) -> SessionInterrupted:
    return SessionInterrupted(command="c", reason="interrupt", chunk=0, seen_us=0, next_us=next_us)


async def take_all(inbox: RemoteInbox) -> list[AnyEvent]:
    inbox.end("closed")
    taken: list[AnyEvent] = []
    with suppress(AttachmentEndedError):
        while True:
            taken.append(await inbox.take())
    return taken


async def test_what_waits_of_before_a_cut_is_dropped_and_what_follows_is_counted_on() -> None:
    inbox = RemoteInbox(lambda: 0)
    for number in range(4):
        inbox.put(frame(number))
    assert (await inbox.take()).type == "media.chunk"
    inbox.put(cut(next_us=400))
    inbox.put(frame(4))
    inbox.put(MediaComplete(stream="video", reason="closed", chunks=5, size_bytes=25))
    word, after, complete = await take_all(inbox)
    assert isinstance(word, SessionInterrupted)
    assert isinstance(after, MediaChunk)
    assert isinstance(complete, MediaComplete)
    assert (after.index, after.chunk) == (1, 4)
    assert (complete.chunks, complete.size_bytes) == (2, 10)


async def test_a_cut_drops_no_event_and_no_later_frame() -> None:
    inbox = RemoteInbox(lambda: 0)
    inbox.put(SessionClosed(reason="closed"))
    inbox.put(frame(7))
    inbox.put(cut(next_us=700))
    assert [each.type for each in await take_all(inbox)] == [
        "session.closed",
        "media.chunk",
        "session.interrupted",
    ]


async def test_a_wait_that_is_cancelled_takes_nothing() -> None:
    inbox = RemoteInbox(lambda: 0)
    waiting = asyncio.create_task(inbox.take())
    await asyncio.sleep(0)
    waiting.cancel()
    inbox.put(frame(0))
    assert isinstance(await inbox.take(), MediaChunk)


async def test_without_a_consumer_the_oldest_events_are_dropped() -> None:
    inbox = RemoteInbox(lambda: 0)
    for number in range(WAITING_EVENTS + 3):
        inbox.put(frame(number))
    taken = await take_all(inbox)
    assert len(taken) == WAITING_EVENTS
    assert isinstance(taken[0], MediaChunk)
    assert taken[0].chunk == 3
