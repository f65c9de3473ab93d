"""Controls that act now: what would still wait at the viewer is taken back, and nothing else."""

from driving import keys
from stub_model import prompt_mark, read_stamp
from talking_stub import TalkingFamily
from worker_session_rig import WorkerSessionRig, turn

from reverie.engine.emissions import ControlApplied, FramesOut, TextOut
from reverie.engine.inputs import ControlId, PromptInput
from reverie.gpu_pool.wire.session_messages import PlayheadMoved
from reverie.gpu_pool.worker.worker_session import WorkerSession

LEAD = 6


def at_its_lead(*seen: int, **parameters: float) -> tuple[WorkerSessionRig, WorkerSession]:
    """Return a session with `LEAD` chunks beyond the last one that was seen."""
    rig = WorkerSessionRig(
        TalkingFamily(frames=2, rate_hz=20.0, lead_chunks=LEAD), history=2 * LEAD
    )
    rig.seen = False
    worker_session = rig.open("a", "narrated_world", **parameters)
    rest(rig)
    for chunk in seen:
        worker_session.seen(PlayheadMoved("a", chunk), rig.clock.now_us)
        rest(rig)
    return rig, worker_session


def rest(rig: WorkerSessionRig) -> None:
    """Run until nothing can run any more."""
    while rig.step():
        pass


def marks(rig: WorkerSessionRig, since: int) -> list[int]:
    """Return the prompts of the chunks that were put out since then."""
    return [read_stamp(out.frames[0]).prompt for out in rig.of("a", FramesOut)[since:]]


def worlds(rig: WorkerSessionRig, since: int) -> list[int]:
    """Return the world's own count of the chunks that were put out since then."""
    return [read_stamp(out.frames[0]).chunk for out in rig.of("a", FramesOut)[since:]]


def test_what_is_unseen_is_taken_back_and_the_control_acts_after_what_was_seen() -> None:
    rig, worker_session = at_its_lead(1)
    made = rig.chunks()
    assert worlds(rig, 0) == list(range(LEAD + 2))
    at = worker_session.take_back(1, "", 0)
    assert at.chunk == 1
    worker_session.push([PromptInput(ControlId("p"), "a city")])
    rest(rig)
    assert worlds(rig, made)[:2] == [2, 3]
    assert set(marks(rig, made)) == {prompt_mark("a city")}
    rig.assert_nothing_is_lost()


def test_what_will_have_been_seen_when_the_answer_comes_stays() -> None:
    rig, worker_session = at_its_lead(1)
    made = rig.chunks()
    worker_session.take_back(1, "", 250_000)  # two chunks of a tenth of a second, and a half
    rest(rig)
    assert worlds(rig, made)[0] == 4


def test_a_chunk_in_which_an_earlier_control_acts_stays_and_with_it_a_tap() -> None:
    rig, worker_session = at_its_lead(1)
    worker_session.take_back(1, "", 0)
    worker_session.push([keys("+up", "-up", control="first")])
    rest(rig)
    made = rig.chunks()
    first = next(each for each in rig.of("a", ControlApplied) if each.control == "first")
    at = worker_session.take_back(1, "", 0)
    assert at.chunk == first.chunk
    worker_session.push([keys("+down", control="second")])
    rest(rig)
    second = next(each for each in rig.of("a", ControlApplied) if each.control == "second")
    assert worlds(rig, made)[0] == 3, "the tap's chunk was made again, or more than it was kept"
    assert second.chunk == made
    rig.assert_nothing_is_lost()


def test_keys_that_are_held_stay_held_in_what_is_made_again() -> None:
    rig, worker_session = at_its_lead(1)
    worker_session.take_back(1, "", 0)
    worker_session.push([keys("+up")])
    rest(rig)
    made = rig.chunks()
    worker_session.take_back(1, "", 0)
    worker_session.push([PromptInput(ControlId("p"), "a city")])
    rest(rig)
    held = [read_stamp(out.frames[0]).held for out in rig.of("a", FramesOut)[made:]]
    assert held
    assert set(held) == {frozenset({"up"})}


def test_nothing_is_taken_back_where_all_was_seen_or_will_be_or_while_paused() -> None:
    rig, worker_session = at_its_lead(1)
    newest = rig.chunks() - 1
    before = worker_session.state_chunks
    worker_session.take_back(newest, "", 0)
    assert worker_session.state_chunks == before
    worker_session.take_back(1, "", 10_000_000)
    assert worker_session.state_chunks == before
    worker_session.pause()
    worker_session.take_back(1, "", 0)
    assert worker_session.state_chunks == before


def test_nothing_is_taken_back_where_making_it_again_takes_as_long_as_seeing_it() -> None:
    _, worker_session = at_its_lead(1)
    before = worker_session.state_chunks
    unseen_us = LEAD * 100_000
    worker_session.take_back(1, "", unseen_us - 20_000)  # less than half a frame of 50 ms
    assert worker_session.state_chunks == before
    worker_session.take_back(1, "", unseen_us - 60_000)
    assert worker_session.state_chunks != before


def test_what_is_being_said_is_not_broken_off() -> None:
    rig, worker_session = at_its_lead(1)
    worker_session.push([turn(" ".join(f"word{number}" for number in range(40)), "t")])
    rig.run(lambda: rig.of("a", TextOut))
    utterances = worker_session.utterances
    assert worker_session.take_back(1, "", 0).chunk == 1
    assert worker_session.utterances == utterances
