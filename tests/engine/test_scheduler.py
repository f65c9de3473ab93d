"""Which units run next."""

from unit_log import LoopWaits

from reverie.engine.scheduler import Candidate, StepScheduler
from reverie.models.contract.loop import BatchKey, WorkPlan


def candidate(
    session: str,
    deadline_us: int = 0,
    *,
    kind: str = "denoise",
    running: bool = True,
    loop: str = "world_model",
) -> Candidate:
    plan = WorkPlan(kind, BatchKey("i", "w", loop, kind))
    return Candidate(session, plan, deadline_us, running)


def names(picked: tuple[Candidate, ...]) -> list[str]:
    return [chosen.session for chosen in picked]


def test_nothing_is_picked_from_nothing() -> None:
    assert StepScheduler().pick([]) == ()


def test_the_earliest_deadline_leads_and_equal_batch_keys_join_it() -> None:
    candidates = [
        candidate("a", 300),
        candidate("b", 100, kind="decode"),
        candidate("c", 200),
        candidate("d", 400, kind="decode"),
    ]
    assert names(StepScheduler().pick(candidates)) == ["b", "d"]
    assert names(StepScheduler(max_batch=1).pick(candidates)) == ["b"]


def test_a_chunk_that_has_begun_is_finished_before_another_begins() -> None:
    candidates = [candidate("next", 0, running=False), candidate("begun", 900)]
    assert names(StepScheduler(max_batch=1).pick(candidates)) == ["begun"]
    assert names(StepScheduler(max_batch=2).pick(candidates)) == ["begun", "next"]


def test_a_full_batch_takes_the_most_urgent_of_its_kind() -> None:
    candidates = [candidate(name, deadline) for name, deadline in (("a", 3), ("b", 1), ("c", 2))]
    assert names(StepScheduler(max_batch=2).pick(candidates)) == ["b", "c"]


def test_no_loop_starves_behind_one_that_is_always_more_urgent() -> None:
    scheduler = StepScheduler(max_batch=1, patience=1)
    candidates = [candidate("loud", 0), candidate("quiet", 10**9), candidate("new", running=False)]
    picks = [names(scheduler.pick(candidates))[0] for _ in range(30)]
    assert picks.count("quiet") >= 3
    assert picks.count("new") >= 3
    assert picks.count("loud") >= 15


def test_one_that_was_passed_over_while_it_was_ready_is_forgotten_when_it_ends() -> None:
    scheduler = StepScheduler(max_batch=1, patience=1)
    pair = [candidate("a", 0), candidate("b", 9)]
    scheduler.pick(pair)
    scheduler.pick(pair)
    scheduler.forget("b")
    assert names(scheduler.pick(pair)) == ["a"]


def test_equal_candidates_are_picked_in_an_order_that_repeats() -> None:
    candidates = [candidate("b"), candidate("a"), candidate("c")]
    assert names(StepScheduler(max_batch=1).pick(candidates)) == ["a"]
    assert names(StepScheduler(max_batch=1).pick(candidates[::-1])) == ["a"]


def test_no_loop_waits_for_more_than_one_unit_of_its_sibling() -> None:
    scheduler = StepScheduler(max_batch=1)
    frames, words = candidate("a", 0), candidate("a", 10**9, loop="ar_decode")
    picks = [scheduler.pick([frames, words])[0] for _ in range(12)]
    assert [pick.plan.batch_key.loop for pick in picks] == ["world_model", "ar_decode"] * 6


def test_units_of_different_loops_never_share_a_batch() -> None:
    picked = StepScheduler().pick([candidate("a"), candidate("b", loop="ar_decode")])
    assert names(picked) == ["a"]


def test_a_loop_that_its_sibling_waits_for_is_as_urgent_as_that_one() -> None:
    scheduler = StepScheduler(max_batch=1)
    mine = [candidate("a", 100), candidate("a", 10**9, loop="ar_decode")]
    other = candidate("b", 200)
    picks = [scheduler.pick([*mine, other])[0] for _ in range(4)]
    loops = [(pick.session, pick.plan.batch_key.loop) for pick in picks]
    assert loops == [("a", "world_model"), ("a", "ar_decode")] * 2


def test_of_three_loops_none_waits_for_more_than_a_unit_of_each_other() -> None:
    scheduler = StepScheduler(max_batch=1)
    loops = [candidate("a", 10**index, loop=f"loop {index}") for index in range(3)]
    waits = LoopWaits()
    for _ in range(30):
        waits.note(loops, scheduler.pick(loops))
    assert waits.longest == 2


def test_a_loop_that_could_not_run_has_not_waited() -> None:
    scheduler = StepScheduler(max_batch=1)
    frames, words = candidate("a", 0), candidate("a", 10**9, loop="ar_decode")
    scheduler.pick([frames, words])  # the words wait
    scheduler.pick([frames])
    assert scheduler.pick([frames, words])[0].plan.batch_key.loop == "world_model"


def test_a_session_that_joins_a_batch_skips_no_turn_of_its_sibling() -> None:
    scheduler = StepScheduler(max_batch=4)
    words = candidate("a", 10**9, loop="ar_decode")
    scheduler.pick([candidate("a", 0), words])
    picked = scheduler.pick([candidate("a", 5), words, candidate("b", 0)])
    assert names(picked) == ["b"]
