"""The slot manager against a worker that answers when it pleases, and is lost at any time."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import cast

import numpy as np
import pytest
import stub_model
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.engine.emissions import FramesHeader, FramesOut
from reverie.gpu_pool import (
    AskTimeoutError,
    PoolError,
    PoolFullError,
    PoolOptions,
    SessionRecovered,
    StartRequest,
    WorkerLost,
)
from reverie.gpu_pool.server.session_entry import EntryState, SessionEntry
from reverie.gpu_pool.server.slot_manager import SlotManager
from reverie.gpu_pool.server.worker_link import WorkerLink
from reverie.gpu_pool.wire.messages import (
    EmissionMessage,
    FromWorker,
    ModelLoaded,
    RequestDone,
    RequestRefused,
    ToWorker,
)
from reverie.gpu_pool.wire.notifications import Notification, SessionLost
from reverie.gpu_pool.wire.ring import RingLayout
from reverie.gpu_pool.wire.session_messages import CloseSession, OpenSession, Pause

SLOTS = 2
LINE = 2
ACCOUNTS = ((), ("a",), ("a", "b"), ("c",))
OPTIONS = PoolOptions.model_validate(
    {"models": ({"name": "stub"},), "waiting_line": LINE, "poison_chunks": 1}
)


class FakeWorker:
    """Takes messages like a link, and answers them one by one when told to."""

    def __init__(self) -> None:
        self.open: set[str] = set()
        self._unanswered: list[ToWorker] = []

    def send(self, *messages: ToWorker) -> None:
        self._unanswered.extend(messages)

    def answer_next(self, refuse: bool) -> FromWorker | None:
        """Carry out the next message."""
        while self._unanswered:
            message = self._unanswered.pop(0)
            match message:
                case OpenSession(request=request, session=session) if refuse:
                    return RequestRefused(request, session, "open_failed", "not this one")
                case OpenSession(request=request, session=session):
                    assert session not in self.open, "it is open already"
                    self.open.add(session)
                    assert len(self.open) <= SLOTS, "more sessions than slots"
                    return RequestDone(request, session)
                case CloseSession(request=request, session=session):
                    self.open.discard(session)
                    return RequestDone(request, session)
                case Pause(request=request, session=session) if request:
                    return RequestDone(request, session)
                case _:
                    pass
        return None


class SlotRig:
    """A slot manager with its worker and visitors, and what must always be true of them."""

    def __init__(self) -> None:
        self.slot_manager = SlotManager(OPTIONS, lambda reason: None, lambda sessions: None)
        self.worker: FakeWorker | None = None
        self.visitors: list[SessionEntry] = []
        self.heard: dict[str, list[Notification]] = {}
        self._count = 0
        self._chunks = 0

    def enter(self, which: int) -> None:
        self._count += 1
        name = f"s{self._count}"
        heard = self.heard.setdefault(name, [])
        full = len(self.slot_manager.line) >= LINE
        accounts = ACCOUNTS[which % len(ACCOUNTS)]
        opening = StartRequest(name, "stub", "world", 1, accounts=accounts)
        positions: list[int] = []
        try:
            expected = self.slot_manager.expected_position(accounts)
        except PoolFullError:
            assert full
            with pytest.raises(PoolFullError):
                self.slot_manager.enter(opening, heard.append, positions.append)
            return
        self.visitors.append(self.slot_manager.enter(opening, heard.append, positions.append))
        if expected:
            assert positions[0] == expected
        else:  # it has a slot, or one is being cleared for it
            assert not positions or (positions[0] == 1 and self.slot_manager._shares.coming)

    def leave(self, which: int) -> None:
        if self.visitors:
            self.slot_manager.leave(self.visitors[which % len(self.visitors)])

    def cancel(self, which: int) -> None:
        """Have a waiting session cancelled before its `leave` runs."""
        if self.visitors:
            self.visitors[which % len(self.visitors)].opened.cancel()

    def ask(self, which: int) -> None:
        if self.visitors:
            visitor = self.visitors[which % len(self.visitors)]
            try:
                self.slot_manager.traffic.ask(visitor, Pause(0, visitor.session))
            except PoolError:
                assert visitor.state is not EntryState.OPEN

    def begin(self, _: int) -> None:
        if self.worker is None:
            self.worker = FakeWorker()
            loaded = ModelLoaded(stub_model.StubFamily().spec, "v", SLOTS, 0, RingLayout(1, 1))
            self.slot_manager.begin(cast(WorkerLink, self.worker), loaded)

    def lose(self, which: int) -> None:
        if self.worker:
            self.worker = None
            suspects = [visitor.serial for visitor in self.visitors if visitor.serial == which]
            self.slot_manager.lose("killed", frozenset(suspects))

    def answer(self, which: int) -> None:
        if self.worker and (message := self.worker.answer_next(refuse=which % 7 == 0)):
            self.slot_manager.traffic.received(message)

    def play(self, _: int) -> None:
        """Put a chunk out for every session that is open."""
        self._chunks += 1
        for session in self.worker.open if self.worker else ():
            pixels = np.zeros((1, 1, 1, 3), np.uint8)
            out = FramesOut(FramesHeader(session, "video", self._chunks, 0, 0, 1), pixels)
            self.slot_manager.traffic.received(EmissionMessage(out))

    def settle(self) -> None:
        """Give the worker time to answer everything."""
        self.begin(0)
        assert self.worker is not None
        while message := self.worker.answer_next(refuse=False):
            self.slot_manager.traffic.received(message)

    def check(self) -> None:
        taken = [v for v in self.visitors if v.state not in (EntryState.WAITING, EntryState.GONE)]
        assert self.slot_manager.busy == len(taken) <= SLOTS
        for visitor in self.visitors:
            assert visitor.gone.is_set() == (visitor.state is EntryState.GONE)
            if visitor.state is EntryState.OPEN:
                assert visitor.opened.done()
        waiting = len([v for v in self.visitors if v.state is EntryState.WAITING])
        assert len(self.slot_manager.line) == waiting
        if self.worker:
            assert not (waiting and self.slot_manager.busy < SLOTS), (
                "a slot is free and a session waits"
            )
        for heard in self.heard.values():
            kinds = [
                type(n) for n in heard if isinstance(n, WorkerLost | SessionRecovered | SessionLost)
            ]
            for one, other in pairwise(kinds):
                assert one is not SessionLost, "nothing follows the end"
                assert (one is WorkerLost) == (other is SessionRecovered) or other is SessionLost


ACTIONS: tuple[Callable[[SlotRig, int], None], ...] = (
    SlotRig.enter,
    SlotRig.leave,
    SlotRig.cancel,
    SlotRig.ask,
    SlotRig.begin,
    SlotRig.lose,
    SlotRig.answer,
    SlotRig.answer,
    SlotRig.answer,
    SlotRig.play,
)


async def test_a_session_that_is_closed_while_it_is_opened_ends_without_an_error() -> None:
    rig = SlotRig()
    rig.begin(0)
    rig.enter(0)
    rig.cancel(0)
    rig.answer(1)  # the worker has opened it, and its session is about to hear
    rig.leave(0)
    rig.settle()
    assert rig.visitors[0].state is EntryState.GONE
    assert rig.slot_manager.busy == 0


async def test_what_one_session_waited_for_in_vain_is_not_told_to_the_others() -> None:
    told: list[str] = []
    options = PoolOptions.model_validate({"models": ({"name": "stub"},), "ask_limit_s": 0.01})
    slot_manager = SlotManager(options, told.append, lambda sessions: None)
    loaded = ModelLoaded(stub_model.StubFamily().spec, "v", SLOTS, 0, RingLayout(1, 1))
    slot_manager.begin(cast(WorkerLink, FakeWorker()), loaded)
    visitor = slot_manager.enter(
        StartRequest("secret", "stub", "world", 1), lambda notice: None, None
    )
    with pytest.raises(AskTimeoutError):
        await visitor.opened
    assert told == ["an opening was not answered within 0.01 s"]


async def test_it_is_told_once_when_all_sessions_are_back() -> None:
    told: list[int] = []
    rig = SlotRig()
    rig.slot_manager = SlotManager(OPTIONS, lambda reason: None, told.append)
    for action in (SlotRig.begin, SlotRig.enter, SlotRig.enter, SlotRig.answer, SlotRig.answer):
        action(rig, 1)
    assert told == [], "no session was lost"
    rig.lose(99)
    rig.begin(0)
    rig.answer(1)
    assert told == []
    rig.answer(1)
    assert told == [2]
    rig.leave(0)
    rig.settle()
    assert told == [2]


async def test_only_a_session_that_runs_a_step_while_a_worker_dies_is_under_suspicion() -> None:
    """However often workers are lost at rest, no session is given up."""
    rig = SlotRig()
    for action in (SlotRig.begin, SlotRig.enter, SlotRig.enter, SlotRig.answer, SlotRig.answer):
        action(rig, 1)
    for _ in range(4):
        rig.lose(-1)  # no step runs
        rig.begin(0)
        rig.answer(1)
        rig.answer(1)
    assert [visitor.suspected for visitor in rig.visitors] == [False, False]
    for _ in range(2):
        rig.lose(rig.visitors[0].serial)
        rig.begin(0)
        rig.answer(1)
        rig.answer(1)
    assert [visitor.state for visitor in rig.visitors] == [EntryState.GONE, EntryState.OPEN]


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 20)), min_size=30, max_size=80))
def test_no_order_of_events_loses_a_slot_or_a_session(
    steps: list[tuple[Callable[[SlotRig, int], None], int]],
) -> None:
    async def play() -> None:
        rig = SlotRig()
        for action, number in steps:
            action(rig, number)
            rig.check()
        rig.settle()
        rig.check()
        for visitor in rig.visitors:
            assert visitor.state is EntryState.WAITING or visitor.opened.done()
            rig.slot_manager.leave(visitor)
        rig.settle()
        assert rig.slot_manager.busy == 0
        assert len(rig.slot_manager.line) == 0
        assert rig.worker is not None
        assert not rig.worker.open
        assert all(visitor.gone.is_set() for visitor in rig.visitors)
        assert not rig.slot_manager._pending_requests

    asyncio.run(play())
