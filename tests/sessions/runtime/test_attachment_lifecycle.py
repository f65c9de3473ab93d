"""Clients attach, leave, take over and come back."""

import pytest
from session_rig import session_rig

from reverie.gpu_pool.wire.session_messages import PlayheadMoved, SetWatched
from reverie.media import Codec
from reverie.sessions.attachments.attachment import Attachment, AttachOptions, Role
from reverie.sessions.protocol.commands import AnyCommand
from reverie.sessions.protocol.errors import TooManyError
from reverie.sessions.protocol.events import (
    Error,
)
from reverie.sessions.protocol.parsing import parse_command
from reverie.sessions.state.limits import SessionLimits


async def test_a_second_driver_takes_over_and_the_first_is_told() -> None:
    async with session_rig() as rig:
        session, lease, first = await rig.driven()
        second = rig.attach(session)
        assert await first.until_end() == "replaced"
        assert isinstance(first.events[-1], Error)
        assert first.events[-1].code == "replaced"
        lease.put_out_chunk()
        assert await second.chunk()
        answer = await first.attachment.request(_resume())
        assert isinstance(answer, Error)
        assert not session.state.over


async def test_reconnecting_at_random_leaves_one_loop_and_always_shows_a_picture() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        for turn in range(20):
            lease.put_out_chunk()
            if turn % 3:
                await client.chunk()
            client.attachment.detach()
            client = rig.attach(session, codec=list(Codec)[turn % 3])
            await client.until("media.init")
            await client.until("media.chunk")
        assert rig.pool.opened == 1


async def test_a_late_viewer_is_shown_the_newest_picture_and_the_loop_continues() -> None:
    async with session_rig() as rig:
        session, lease, client = await rig.driven()
        lease.put_out_chunk()
        await client.until("media.chunk")
        client.attachment.detach()
        assert lease.sent[-1] == SetWatched(session.id, False)
        lease.sent.clear()
        late = rig.attach(session)
        assert lease.sent == [
            PlayheadMoved(session.id, 0, "world_model"),
            SetWatched(session.id, True),
        ]
        await late.until("media.init")


async def test_two_sessions_never_share_a_frame_or_an_event() -> None:
    async with session_rig() as rig:
        sessions = [await rig.driven(f"prompt {n}") for n in range(2)]
        for _ in range(5):
            for _, lease, _ in sessions:
                lease.put_out_chunk()
            for _, _, client in sessions:
                await client.chunk()
        for session, _, client in sessions:
            assert {event.session for event in client.events} == {session.id}


async def test_attachments_are_limited() -> None:
    async with session_rig(SessionLimits(attachments=2)) as rig:
        session, _, _ = await rig.driven()
        rig.attach(session, Role.VIEWER)
        with pytest.raises(TooManyError):
            rig.attach(session, Role.VIEWER)
        rig.attach(session)  # takes the place of the driver


async def test_a_place_is_kept_for_the_driver() -> None:
    async with session_rig(SessionLimits(attachments=4)) as rig:
        session, _, driver = await rig.driven()
        driver.attachment.detach()  # the line drops
        for _ in range(3):
            rig.attach(session, Role.VIEWER)
        for _ in range(3):
            with pytest.raises(TooManyError, match="attachments is limited to 4"):
                rig.attach(session, Role.VIEWER)
        again = rig.attach(session)
        assert again.attachment.ended is None
        assert len(session._context.attached) == 4


async def test_one_address_with_all_viewers_gives_a_place_up_for_another() -> None:
    async with session_rig(SessionLimits(attachments=4)) as rig:
        session, _, driver = await rig.driven()

        def watch(address: str) -> Attachment:
            return session.attach(Role.VIEWER, AttachOptions(accounts=(address,)))

        first, second, third = (watch("a") for _ in range(3))
        other = watch("b")
        assert [each.ended for each in (first, second, third, other)] == [
            None,
            None,
            "too_many_attachments",
            None,
        ]
        with pytest.raises(TooManyError):
            watch("a")
        with pytest.raises(TooManyError):
            watch("b")  # it would then have as many
        assert driver.attachment.ended is None


def _resume() -> AnyCommand:
    return parse_command({"type": "resume", "id": "late"})
