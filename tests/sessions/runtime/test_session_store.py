"""Opening, finding, listing and ending sessions; access; limits."""

import asyncio

import pytest
from session_rig import session_rig
from waiting import until

from reverie.gpu_pool.wire.notifications import SessionLost
from reverie.sessions.attachments.attachment import Role
from reverie.sessions.protocol.errors import (
    BadRequestError,
    SessionEndedError,
    TooManyError,
    UnknownOwnerError,
    UnknownSessionError,
)
from reverie.sessions.runtime.session_request import SessionRequest
from reverie.sessions.state.limits import SessionLimits


@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        ({"model": "nope"}, "model", "unknown_model"),
        ({"program": "nope"}, "program", "unknown_program"),
        ({"prompt": "x" * 2001}, "prompt", "too_long"),
        ({"seed": -1}, "seed", "out_of_range"),
        ({"seed": 2**53}, "seed", "out_of_range"),
        ({"parameters": {"speed": 11.0}}, "parameters.speed", "out_of_range"),
        ({"parameters": {"speed": float("nan")}}, "parameters.speed", "non_finite"),
        ({"parameters": {"nope": 1.0}}, "parameters.nope", "unknown_parameter"),
    ],
)
async def test_a_wrong_request_names_its_field_and_takes_no_place(
    fields: dict[str, object], field: str, code: str
) -> None:
    async with session_rig() as rig:
        request = SessionRequest(**{"model": "fake", **fields})  # type: ignore[arg-type]
        with pytest.raises(BadRequestError) as caught:
            await rig.store.create(request)
        assert (caught.value.field, caught.value.code) == (field, code)
        assert len(rig.store) == 0
        assert rig.pool.opened == 0


async def test_a_session_has_a_token_to_drive_and_one_to_watch() -> None:
    async with session_rig() as rig:
        credentials = await rig.open()
        other = await rig.open()
        id = credentials.session.id
        assert rig.store.admit(id, credentials.token) == (credentials.session, Role.DRIVER)
        assert rig.store.admit(id, credentials.watch_token) == (credentials.session, Role.VIEWER)
        for wrong in ("", "x", other.token, credentials.owner, id, "\ud83d", "ä" * 32):
            with pytest.raises(UnknownSessionError):
                rig.store.admit(id, wrong)
        assert credentials.token not in repr(credentials)


async def test_owners_see_their_own_sessions_only() -> None:
    async with session_rig(slots=3) as rig:
        first = await rig.open()
        second = await rig.open(owner=first.owner)
        foreign = await rig.open()
        assert rig.store.list(first.owner) == (first.session, second.session)
        assert rig.store.list(foreign.owner) == (foreign.session,)
        assert rig.store.list("") == ()


async def test_sessions_are_limited_for_one_owner_and_in_all() -> None:
    async with session_rig(SessionLimits(sessions=3, sessions_per_owner=2), slots=3) as rig:
        first = await rig.open()
        await rig.open(owner=first.owner)
        with pytest.raises(TooManyError, match="sessions_per_owner is limited to 2"):
            await rig.open(owner=first.owner)
        third = await rig.open()
        with pytest.raises(TooManyError, match="sessions is limited to 3"):
            await rig.open()
        rig.store.close(third.session.id)
        await third.session.gone()
        assert await rig.open()


async def test_an_owner_s_secret_that_was_not_issued_is_refused() -> None:
    async with session_rig() as elsewhere:
        foreign = (await elsewhere.open()).owner
    async with session_rig() as rig:
        own = (await rig.open()).owner
        for wrong in ("", "mine", foreign, own[:-1], own + "a", own.swapcase(), "\ud83d", "ä" * 96):
            with pytest.raises(UnknownOwnerError):
                await rig.open(owner=wrong)
            with pytest.raises(UnknownOwnerError):
                rig.store.check_owner(wrong)
        assert len(rig.store) == 1
        rig.store.check_owner(own)


async def test_sessions_are_limited_for_one_address_across_owners() -> None:
    async with session_rig(SessionLimits(sessions_per_address=2), slots=8) as rig:
        first = await rig.open(address="10.0.0.1")
        await rig.open(address="10.0.0.1")
        for owner in (None, first.owner):
            with pytest.raises(TooManyError, match="sessions_per_address is limited to 2"):
                await rig.open(address="10.0.0.1", owner=owner)
        assert await rig.open(address="10.0.0.2")
        for _ in range(3):
            assert await rig.open()


async def test_addresses_are_not_counted_when_the_limit_is_off() -> None:
    async with session_rig(SessionLimits(sessions_per_address=None), slots=40) as rig:
        for _ in range(40):
            assert await rig.open(address="10.0.0.1")


async def test_when_places_and_queue_are_full_it_says_when_to_try_again() -> None:
    async with session_rig(slots=1, line=1) as rig:
        await rig.open()
        await rig.open()
        with pytest.raises(TooManyError) as caught:
            await rig.open()
        assert caught.value.retry_after_s == 7.0
        assert str(caught.value) == "waiting_line is limited to 1"
        await until(lambda: len(rig.store) == 2)


async def test_giving_up_on_opening_leaves_no_session() -> None:
    async with session_rig() as rig:
        opening = asyncio.create_task(rig.store.create(SessionRequest(model="fake")))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await until(lambda: len(rig.store) == 0)


async def test_an_ended_session_is_remembered_by_its_reason() -> None:
    async with session_rig() as rig:
        session, lease, _ = await rig.driven()
        lease.say(SessionLost(session.id, "worker_lost", "twice in a row"))
        await session.gone()
        for look in (lambda: rig.store.get(session.id), lambda: rig.store.close(session.id)):
            with pytest.raises(SessionEndedError) as caught:
                look()
            assert caught.value.reason == "worker_lost"
        with pytest.raises(UnknownSessionError):
            rig.store.get("0" * 16)


async def test_draining_ends_all_and_opens_none() -> None:
    async with session_rig() as rig:
        driven = [await rig.driven() for _ in range(2)]
        waiting = (await rig.open()).session
        viewer = rig.attach(waiting)
        drain = asyncio.create_task(rig.store.drain(1.0))
        await asyncio.sleep(0)
        with pytest.raises(SessionEndedError) as caught:
            await rig.open()
        assert caught.value.reason == "shutdown"
        await drain
        for _, _, client in driven:
            assert await client.until_end() == "shutdown"
        assert await viewer.until_end() == "shutdown"


async def test_draining_does_not_wait_longer_than_it_may() -> None:
    async with session_rig() as rig:
        _, lease, client = await rig.driven()
        lease.answering.clear()
        await rig.store.drain(0.05)
        assert await client.until_end() == "shutdown"
