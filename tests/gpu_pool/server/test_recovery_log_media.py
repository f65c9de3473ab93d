"""Pictures outlive the worker that they were shown to, until a snapshot holds them."""

import numpy as np

from reverie.engine.emissions import ControlApplied, ControlSuperseded, SnapshotOut
from reverie.engine.inputs import ControlId, StreamInput
from reverie.gpu_pool.server.recovery_log import RecoveryLog
from reverie.gpu_pool.wire.messages import RequestDone
from reverie.gpu_pool.wire.session_messages import Interrupt, PushInputs, Reset
from reverie.gpu_pool.wire.start_request import StartRequest
from reverie.models.contract.controls import MediaInput
from reverie.models.contract.loop import Durable

OPENING = StartRequest("s1", "pocket", "continuation", 7, "a lake", {})


def picture(control: str) -> StreamInput:
    return StreamInput(
        ControlId(control), "clip", MediaInput(0, np.zeros((2, 2, 3), np.uint8), last=True)
    )


def recovery_log(*controls: str) -> RecoveryLog:
    """Return the memory of a session that was shown pictures, none of which has acted yet."""
    memory = RecoveryLog(OPENING)
    memory.sent(PushInputs("s1", tuple(picture(each) for each in controls)))
    return memory


def acts(memory: RecoveryLog, control: str, chunk: int) -> bool:
    return memory.heard(ControlApplied("s1", ControlId(control), 0, chunk, 100 * chunk))


def replayed(memory: RecoveryLog) -> list[str]:
    pushes = [each for each in memory.recovery_plan().following if isinstance(each, PushInputs)]
    return [item.control for push in pushes for item in push.inputs]


def test_what_has_acted_since_the_snapshot_is_shown_again_before_what_has_not() -> None:
    memory = recovery_log("a", "b", "c")
    acts(memory, "a", 3)
    acts(memory, "b", 3)
    assert replayed(memory) == ["a", "b", "c"]
    assert not acts(memory, "a", 5), "its receipt was heard before"
    assert acts(memory, "c", 5)


def test_a_snapshot_holds_what_was_shown_before_it() -> None:
    memory = recovery_log("a", "b")
    acts(memory, "a", 3)
    memory.heard(SnapshotOut("s1", 3, Durable("video_continuation", "1", {}, "{}")))
    assert replayed(memory) == ["b"]


def test_a_picture_after_the_state_that_was_returned_to_is_not_shown_again() -> None:
    memory = recovery_log("a", "b")
    acts(memory, "a", 3)
    acts(memory, "b", 6)
    memory.answered(Interrupt(1, "s1", 4), RequestDone(1, "s1", 4, back_us=500))
    assert replayed(memory) == ["a"]
    memory.answered(Reset(2, "s1"), RequestDone(2, "s1", -1))
    assert replayed(memory) == []


def test_what_gave_way_is_forgotten_and_what_is_kept_is_bounded() -> None:
    memory = recovery_log("a")
    memory.heard(ControlSuperseded("s1", ControlId("a"), None))
    assert replayed(memory) == []
    names = [f"p{number}" for number in range(200)]
    memory = recovery_log(*names)
    for name in names:
        acts(memory, name, 1)
    assert replayed(memory) == names[-64:]
