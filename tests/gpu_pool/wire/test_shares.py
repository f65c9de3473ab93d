"""One address asks for everything, and another comes: which sessions get the four slots."""

from collections import Counter
from typing import cast

import pytest
import stub_model
from hypothesis import given
from hypothesis import strategies as st

from reverie.gpu_pool import PoolFullError, PoolOptions, StartRequest
from reverie.gpu_pool.server.session_entry import EntryState, SessionEntry
from reverie.gpu_pool.server.slot_manager import SlotManager
from reverie.gpu_pool.server.worker_link import WorkerLink
from reverie.gpu_pool.wire.messages import ModelLoaded, RequestDone, ToWorker
from reverie.gpu_pool.wire.notifications import Notification, SessionLost
from reverie.gpu_pool.wire.ring import RingLayout
from reverie.gpu_pool.wire.session_messages import CloseSession, OpenSession, SetWatched
from reverie.gpu_pool.wire.shares import held_by, in_turn, load, who_gives_way

SLOTS = 4
LINE = 3


class SharesRig:
    """A slot manager with a worker that does at once what it is told, and visitors by address."""

    def __init__(self, **options: object) -> None:
        settings = {"models": ({"name": "stub"},), "waiting_line": LINE, **options}
        self.slot_manager = SlotManager(
            PoolOptions.model_validate(settings), lambda _: None, lambda _: None
        )
        self.heard: dict[str, list[Notification]] = {}
        self.positions: dict[str, int] = {}
        self.waiting_answers: list[ToWorker] = []
        loaded = ModelLoaded(stub_model.StubFamily().spec, "v", SLOTS, 0, RingLayout(1, 1))
        self.slot_manager.begin(cast(WorkerLink, self), loaded)

    def send(self, *messages: ToWorker) -> None:
        self.waiting_answers.extend(messages)

    def settle(self) -> None:
        while self.waiting_answers:
            match self.waiting_answers.pop(0):
                case OpenSession(request=request, session=session):
                    self.slot_manager.traffic.received(RequestDone(request, session))
                case CloseSession(request=request, session=session):
                    self.slot_manager.traffic.received(RequestDone(request, session))
                case _:
                    pass

    def enter(self, address: str, *, watched: bool = True) -> SessionEntry:
        """Ask for a place; what can be had at once is had."""
        name = f"{address}{len(self.heard)}"
        self.heard[name] = []
        entry = self.slot_manager.enter(
            StartRequest(name, "stub", "world", 1, accounts=(address,)),
            self.heard[name].append,
            lambda position: self.positions.__setitem__(name, position),
        )
        self.settle()
        self.slot_manager.traffic.tell(entry, SetWatched(name, watched))
        return entry

    def fill(self, address: str, count: int, **how: bool) -> list[SessionEntry]:
        return [self.enter(address, **how) for _ in range(count)]

    def gave_way(self, entry: SessionEntry) -> bool:
        lost = [each for each in self.heard[entry.session] if isinstance(each, SessionLost)]
        return [each.code for each in lost] == ["gave_way"]


async def test_a_single_account_may_have_all_slots_and_the_whole_queue() -> None:
    rig = SharesRig()
    hog = rig.fill("a", SLOTS + LINE)
    assert [each.state for each in hog] == [EntryState.OPEN] * SLOTS + [EntryState.WAITING] * LINE
    with pytest.raises(PoolFullError):
        rig.enter("a")
    assert not any(rig.gave_way(each) for each in hog)


async def test_a_new_account_gets_a_slot_at_once_though_all_are_taken() -> None:
    rig = SharesRig()
    hog = rig.fill("a", SLOTS + LINE)
    newcomer = rig.enter("b")
    assert newcomer.state is EntryState.OPEN
    assert [rig.gave_way(each) for each in hog[:SLOTS]] == [False, False, False, True]
    assert [each.state for each in hog[SLOTS:]] == [EntryState.WAITING] * LINE


async def test_the_sessions_without_a_viewer_give_way_first() -> None:
    rig = SharesRig()
    ghosts = rig.fill("a", 1, watched=False)
    lively = rig.fill("a", SLOTS - 1)
    assert rig.enter("b").state is EntryState.OPEN
    assert rig.gave_way(ghosts[0])
    assert not any(rig.gave_way(each) for each in lively)


async def test_each_comes_to_an_even_share_and_no_further() -> None:
    rig = SharesRig()
    rig.fill("a", SLOTS)
    others = rig.fill("b", 3)
    assert [each.state for each in others] == [EntryState.OPEN, EntryState.OPEN, EntryState.WAITING]
    held = Counter(each.opening.accounts[0] for each in rig.slot_manager._entries.values())
    assert held == {"a": 2, "b": 2}
    third = rig.enter("c")
    assert third.state is EntryState.OPEN, "an address with two gives one to an address with none"
    fourth = rig.enter("d")
    assert fourth.state is EntryState.OPEN
    fifth = rig.enter("e")
    assert fifth.state is EntryState.WAITING, "no address has two any more"
    assert rig.positions[fifth.session] == 1, "and it is before the second request of b"
    assert rig.positions[others[2].session] == 2


async def test_a_newcomer_goes_ahead_of_further_sessions_of_an_account_with_slots() -> None:
    rig = SharesRig(give_way="none")
    hog = rig.fill("a", SLOTS + LINE)
    newcomer = rig.enter("b")
    assert newcomer.session in rig.slot_manager.line
    assert rig.positions[newcomer.session] == 1
    with pytest.raises(PoolFullError):
        await hog[-1].opened
    assert hog[-1].state is EntryState.GONE, (
        "the last session of the address that asks for more has left the queue"
    )
    rig.slot_manager.leave(hog[0])
    rig.settle()
    assert newcomer.state is EntryState.OPEN
    assert [each.state for each in hog[SLOTS:-1]] == [EntryState.WAITING] * (LINE - 1)


async def test_a_slot_that_is_being_given_back_is_waited_for_where_no_other_session_waits() -> None:
    rig = SharesRig(waiting_line=0)
    first, *_ = rig.fill("a", SLOTS)
    rig.slot_manager.leave(first)  # and the worker has not said yet that it is free
    assert rig.enter("a").state is EntryState.OPEN
    with pytest.raises(PoolFullError):
        rig.enter("a")


async def test_only_unwatched_sessions_give_way_where_the_operator_says_so() -> None:
    rig = SharesRig(give_way="unwatched")
    rig.fill("a", SLOTS - 1)
    ghost = rig.enter("a", watched=False)
    assert rig.enter("b").state is EntryState.OPEN
    assert rig.gave_way(ghost)
    assert rig.enter("c").state is EntryState.WAITING


async def test_it_is_crowded_only_for_a_session_that_would_wait() -> None:
    rig = SharesRig()
    rig.fill("a", SLOTS + LINE)
    assert not rig.slot_manager.crowded, "a newcomer would get in"
    for address in "bcde":
        rig.enter(address)
    assert rig.slot_manager.crowded


names = st.sampled_from(("a", "b", "c"))
accounts = st.lists(names, max_size=2, unique=True).map(tuple)


@given(st.lists(accounts, max_size=8), st.lists(accounts, max_size=8))
def test_in_turn_keeps_the_order_of_each_account_and_serves_the_one_that_holds_least(
    holding: list[tuple[str, ...]], waiting: list[tuple[str, ...]]
) -> None:
    held = held_by(holding)
    order = in_turn(list(enumerate(waiting)), lambda each: each[1], held)
    assert sorted(index for _, (index, _) in order) == list(range(len(waiting)))
    turns = [turn for turn, _ in order]
    assert turns == sorted(turns)
    for name in "abc":
        places = [index for _, (index, mine) in order if mine == (name,)]
        assert places == sorted(places)
    for turn, (_, mine) in order:
        assert turn >= load(mine, held)


@given(st.lists(accounts, max_size=8), accounts)
def test_no_account_gives_way_to_one_that_would_then_hold_more(
    holding: list[tuple[str, ...]], newcomer: tuple[str, ...]
) -> None:
    held = held_by(holding)
    leaver = who_gives_way(list(enumerate(holding)), newcomer, held)
    if leaver is not None:
        assert load(holding[leaver], held) - 1 >= load(newcomer, held) + 1
    elif newcomer:
        assert all(load(each, held) < load(newcomer, held) + 2 for each in holding)
