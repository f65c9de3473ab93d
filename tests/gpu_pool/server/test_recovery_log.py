import pytest
import torch

from reverie.engine.emissions import (
    ControlApplied,
    ControlSuperseded,
    FramesHeader,
    FramesOut,
    SamplesOut,
    SnapshotOut,
)
from reverie.engine.inputs import (
    AxisInput,
    ControlId,
    ControlInput,
    KeysInput,
    ParameterInput,
    PromptInput,
)
from reverie.gpu_pool import RequestRefusedError, StartRequest
from reverie.gpu_pool.server.recovery_log import RecoveryLog
from reverie.gpu_pool.wire.messages import RequestDone
from reverie.gpu_pool.wire.session_messages import (
    Interrupt,
    KeptSnapshot,
    Pause,
    PushInputs,
    ReleaseKeys,
    Request,
    Reset,
    RestoreSnapshot,
    Resume,
    Rewind,
    SetWatched,
    TakeSnapshot,
)
from reverie.models.contract.controls import KeyEdge
from reverie.models.contract.loop import Durable

OPENING = StartRequest("s", "stub", "world", 7, "a lake", {"speed": 1.0})


@pytest.fixture
def recovery_log() -> RecoveryLog:
    return RecoveryLog(OPENING)


def push(recovery_log: RecoveryLog, *inputs: ControlInput) -> None:
    recovery_log.sent(PushInputs("s", inputs))


def applied(recovery_log: RecoveryLog, control: str, chunk: int = 0) -> bool:
    return recovery_log.heard(ControlApplied("s", ControlId(control), 0, chunk, 0))


def ended(chunk: int) -> int:
    return 100 * (chunk + 1)


def snapshot(chunk: int) -> SnapshotOut:
    return SnapshotOut("s", chunk, Durable("world_model", "v", {}, str(chunk)), ended(chunk))


def frames(chunk: int, pts_us: int, loop: str = "") -> FramesOut:
    pixels = torch.zeros((2, 4, 4, 3), dtype=torch.uint8).numpy()
    return FramesOut(FramesHeader("s", "video", chunk, 0, pts_us, 1000, loop=loop), pixels)


def replayed(recovery_log: RecoveryLog) -> list[ControlInput]:
    following = recovery_log.recovery_plan().following
    return [item for m in following if isinstance(m, PushInputs) for item in m.inputs]


def asked(recovery_log: RecoveryLog, message: Request, chunk: int = -1) -> None:
    recovery_log.answered(message, RequestDone(0, "s", chunk, back_us=ended(chunk)))


LEFT = KeysInput(ControlId("k"), "move", (KeyEdge("left", True),))
PROMPT = PromptInput(ControlId("p"), "a city")


def test_a_session_begins_as_it_was_asked_for(recovery_log: RecoveryLog) -> None:
    plan = recovery_log.recovery_plan()
    assert (plan.chunk, plan.following) == (-1, ())
    opening = plan.opening
    assert (opening.prompt, opening.seed, opening.chunks, opening.pts_us) == ("a lake", 7, 0, 0)
    assert opening.durables == ()
    assert plan.numbered(5, alone=True)[0] == type(opening)(
        5, "s", "world", 7, "a lake", {"speed": 1.0}, alone=True
    )


def test_numbers_and_times_continue(recovery_log: RecoveryLog) -> None:
    recovery_log.heard(frames(chunk=4, pts_us=10_000))
    opening = recovery_log.recovery_plan().opening
    assert (opening.chunks, opening.pts_us) == (5, 12_000)


def test_times_continue_after_the_sound_that_is_furthest(recovery_log: RecoveryLog) -> None:
    recovery_log.heard(frames(chunk=4, pts_us=10_000))
    sound = torch.zeros((80, 1), dtype=torch.int16).numpy()
    recovery_log.heard(SamplesOut("s", "sound", 5, 0, 10_000, 5_000, sound))
    opening = recovery_log.recovery_plan().opening
    assert (opening.chunks, opening.pts_us) == (6, 15_000)


def test_what_has_acted_is_in_the_request_and_not_sent_again(recovery_log: RecoveryLog) -> None:
    push(recovery_log, PROMPT, ParameterInput(ControlId("q"), "speed", 2.0))
    assert applied(recovery_log, "p")
    assert applied(recovery_log, "q")
    assert recovery_log.recovery_plan().opening.prompt == "a city"
    assert recovery_log.recovery_plan().opening.parameters == {"speed": 2.0}
    assert replayed(recovery_log) == []


def test_what_has_no_receipt_is_sent_again_and_then_gets_its_receipt(
    recovery_log: RecoveryLog,
) -> None:
    axis = AxisInput(ControlId("a"), "look", 0.5)
    push(recovery_log, PROMPT, axis)
    assert replayed(recovery_log) == [PROMPT, axis]
    assert applied(recovery_log, "p")


def test_what_was_superseded_is_forgotten(recovery_log: RecoveryLog) -> None:
    push(recovery_log, PROMPT)
    assert recovery_log.heard(ControlSuperseded("s", ControlId("p"), None))
    assert replayed(recovery_log) == []
    assert recovery_log.recovery_plan().opening.prompt == "a lake"


def test_a_held_key_is_pressed_again_without_a_second_receipt(recovery_log: RecoveryLog) -> None:
    push(recovery_log, LEFT)
    assert applied(recovery_log, "k")
    assert replayed(recovery_log) == [LEFT]
    assert not applied(recovery_log, "k")


def test_a_released_key_stays_released(recovery_log: RecoveryLog) -> None:
    push(recovery_log, LEFT)
    applied(recovery_log, "k")
    push(recovery_log, KeysInput(ControlId("u"), "move", (KeyEdge("left", False),)))
    applied(recovery_log, "u")
    assert replayed(recovery_log) == []


def test_releasing_all_keys_also_releases_those_without_a_receipt(
    recovery_log: RecoveryLog,
) -> None:
    push(recovery_log, LEFT)
    applied(recovery_log, "k")
    late = KeysInput(ControlId("l"), "move", (KeyEdge("up", True),))
    push(recovery_log, late)
    recovery_log.sent(ReleaseKeys("s"))
    assert replayed(recovery_log) == [
        KeysInput(ControlId("l"), "move", (KeyEdge("up", True), KeyEdge("up", False)))
    ]


def test_recovery_continues_from_the_newest_snapshot(recovery_log: RecoveryLog) -> None:
    assert recovery_log.heard(snapshot(1))
    recovery_log.heard(snapshot(5))
    plan = recovery_log.recovery_plan()
    assert plan.chunk == 5
    assert [durable.text for durable in plan.opening.durables] == ["5"]


@pytest.mark.parametrize(
    "message", [Interrupt(0, "s", 3), Rewind(0, "s", 3), RestoreSnapshot(0, "s", "name")]
)
def test_a_state_that_was_left_is_not_returned_to(
    recovery_log: RecoveryLog, message: Request
) -> None:
    for chunk in (1, 3, 5):
        recovery_log.heard(snapshot(chunk))
    asked(recovery_log, message, chunk=3)
    assert recovery_log.recovery_plan().chunk == 3
    asked(recovery_log, message, chunk=0)
    assert recovery_log.recovery_plan().chunk == -1


def test_a_snapshot_that_lasts_is_given_to_the_next_worker(recovery_log: RecoveryLog) -> None:
    durable = Durable("world_model", "v", {}, "3")
    recovery_log.answered(TakeSnapshot(0, "s", "here"), RequestDone(1, "s", 3, 0, (durable,)))
    kept = KeptSnapshot("here", 3, (durable,))
    for _ in range(2):
        assert recovery_log.recovery_plan().opening.kept == (kept,)
    recovery_log.check(RestoreSnapshot(0, "s", "here"))


def test_a_restored_state_is_the_one_returned_to(recovery_log: RecoveryLog) -> None:
    durable = Durable("world_model", "v", {}, "3")
    recovery_log.answered(TakeSnapshot(0, "s", "here"), RequestDone(1, "s", 3, 0, (durable,)))
    for chunk in (40, 41, 42, 43):  # older ones are not kept
        recovery_log.heard(snapshot(chunk))
    asked(recovery_log, RestoreSnapshot(0, "s", "here"), chunk=3)
    plan = recovery_log.recovery_plan()
    assert (plan.chunk, plan.opening.durables) == (3, (durable,))


def test_a_snapshot_that_does_not_last_is_said_to_be_lost_with_its_worker(
    recovery_log: RecoveryLog,
) -> None:
    restore = RestoreSnapshot(0, "s", "here")
    asked(recovery_log, TakeSnapshot(0, "s", "here"), chunk=3)
    recovery_log.check(restore)
    assert recovery_log.recovery_plan().opening.kept == ()
    with pytest.raises(RequestRefusedError, match="lost with the worker") as refused:
        recovery_log.check(restore)
    assert refused.value.code == "unknown_snapshot"
    asked(recovery_log, TakeSnapshot(0, "s", "here"), chunk=5)
    recovery_log.check(restore)


def test_after_a_reset_it_begins_again_with_the_new_seed(recovery_log: RecoveryLog) -> None:
    recovery_log.heard(snapshot(1))
    asked(recovery_log, Reset(0, "s", seed=9))
    assert recovery_log.recovery_plan().opening.durables == ()
    assert recovery_log.recovery_plan().opening.seed == 9
    asked(recovery_log, Reset(0, "s"))
    assert recovery_log.recovery_plan().opening.seed == 9


def test_a_pause_and_the_absence_of_viewers_last(recovery_log: RecoveryLog) -> None:
    asked(recovery_log, Pause(0, "s"))
    recovery_log.sent(SetWatched("s", False))
    assert recovery_log.recovery_plan().following == (SetWatched("s", False), Pause(0, "s"))
    asked(recovery_log, Resume(0, "s"))
    recovery_log.sent(SetWatched("s", True))
    assert recovery_log.recovery_plan().following == (SetWatched("s", True),)


def test_it_keeps_little_of_a_long_session(recovery_log: RecoveryLog) -> None:
    for index in range(10_000):
        push(recovery_log, PromptInput(ControlId(f"p{index}"), "x"))
        recovery_log.heard(snapshot(index))
    assert len(replayed(recovery_log)) == 4096
    assert len(recovery_log._snapshots["world_model"]) == 4


def piece(chunk: int) -> SamplesOut:
    samples = torch.zeros((40, 1), dtype=torch.int16).numpy()
    return SamplesOut("s", "sound", chunk, 0, 0, 40, samples, loop="sounds")


def heard_of_two_loops(recovery_log: RecoveryLog) -> None:
    """A chunk of pictures is as long as two and a half of sound."""
    done = RequestDone(0, "s", state_chunks={"world_model": -1, "sounds": -1})
    recovery_log.opened(done)
    for chunk in (0, 1, 2):
        recovery_log.heard(frames(chunk, 0, "world_model"))
        recovery_log.heard(snapshot(chunk))
    for chunk in range(5):
        recovery_log.heard(piece(chunk))
        durable = Durable("sounds", "v", {}, str(chunk))
        recovery_log.heard(SnapshotOut("s", chunk, durable, 40 * (chunk + 1)))


def test_two_loops_are_recovered_at_one_media_time_with_numbers_of_their_own(
    recovery_log: RecoveryLog,
) -> None:
    heard_of_two_loops(recovery_log)  # pictures up to 300, sound up to 200
    plan = recovery_log.recovery_plan()
    assert plan.chunk == 1
    told = {durable.loop: durable.text for durable in plan.opening.durables}
    assert told == {"world_model": "1", "sounds": "4"}
    assert plan.opening.numbers == {"world_model": 3, "sounds": 5}


def test_a_state_after_the_one_that_two_loops_returned_to_is_not_recovered(
    recovery_log: RecoveryLog,
) -> None:
    heard_of_two_loops(recovery_log)
    recovery_log.answered(Interrupt(0, "s", 0), RequestDone(0, "s", 0, back_us=100))
    told = {durable.loop: durable.text for durable in recovery_log.recovery_plan().opening.durables}
    assert told == {"world_model": "0", "sounds": "1"}


def test_an_interrupt_of_one_loop_keeps_what_the_other_has_come_to(
    recovery_log: RecoveryLog,
) -> None:
    heard_of_two_loops(recovery_log)
    recovery_log.answered(Interrupt(0, "s", 0, "sounds"), RequestDone(0, "s", 0, back_us=80))
    assert recovery_log.recovery_plan().opening.durables[1].text == "1"
    recovery_log.heard(SnapshotOut("s", 9, Durable("sounds", "v", {}, "9"), 400))
    assert recovery_log.recovery_plan().chunk == 2
