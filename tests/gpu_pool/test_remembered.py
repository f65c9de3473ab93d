from dataclasses import replace

import pytest
import torch

from reverie.engine.emissions import (
    ControlApplied,
    ControlSuperseded,
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
from reverie.gpu_pool import Opening, RequestRefusedError
from reverie.gpu_pool.messages import (
    Asked,
    Done,
    Interrupt,
    KeptSnapshot,
    Pause,
    PushInputs,
    ReleaseKeys,
    Reset,
    RestoreSnapshot,
    Resume,
    Rewind,
    TakeSnapshot,
    Watched,
)
from reverie.gpu_pool.remembered import Remembered
from reverie.models.controls import KeyEdge
from reverie.models.loop import Durable

OPENING = Opening("s", "stub", "world", 7, "a lake", {"speed": 1.0})


@pytest.fixture
def remembered() -> Remembered:
    return Remembered(OPENING)


def push(remembered: Remembered, *inputs: ControlInput) -> None:
    remembered.sent(PushInputs("s", inputs))


def applied(remembered: Remembered, control: str, chunk: int = 0) -> bool:
    return remembered.heard(ControlApplied("s", ControlId(control), 0, chunk, 0))


def ended(chunk: int) -> int:
    return 100 * (chunk + 1)


def snapshot(chunk: int) -> SnapshotOut:
    return SnapshotOut("s", chunk, Durable("world_model", "v", {}, str(chunk)), ended(chunk))


def frames(chunk: int, pts_us: int) -> FramesOut:
    pixels = torch.zeros((2, 4, 4, 3), dtype=torch.uint8).numpy()
    return FramesOut("s", "video", chunk, 0, pts_us, 1000, pixels)


def replayed(remembered: Remembered) -> list[ControlInput]:
    following = remembered.revival().following
    return [item for m in following if isinstance(m, PushInputs) for item in m.inputs]


def asked(remembered: Remembered, message: Asked, chunk: int = -1) -> None:
    remembered.answered(message, Done(0, "s", chunk, back_us=ended(chunk)))


LEFT = KeysInput(ControlId("k"), "move", (KeyEdge("left", True),))
PROMPT = PromptInput(ControlId("p"), "a city")


def test_a_session_begins_as_it_was_asked_for(remembered: Remembered) -> None:
    revival = remembered.revival()
    assert (revival.chunk, revival.following) == (-1, ())
    opening = revival.opening
    assert (opening.prompt, opening.seed, opening.chunks, opening.pts_us) == ("a lake", 7, 0, 0)
    assert opening.durables == ()
    assert revival.numbered(5, alone=True)[0] == type(opening)(
        5, "s", "world", 7, "a lake", {"speed": 1.0}, alone=True
    )


def test_numbers_and_times_go_on(remembered: Remembered) -> None:
    remembered.heard(frames(chunk=4, pts_us=10_000))
    opening = remembered.revival().opening
    assert (opening.chunks, opening.pts_us) == (5, 12_000)


def test_times_go_on_after_the_sound_that_is_furthest(remembered: Remembered) -> None:
    remembered.heard(frames(chunk=4, pts_us=10_000))
    sound = torch.zeros((80, 1), dtype=torch.int16).numpy()
    remembered.heard(SamplesOut("s", "sound", 5, 0, 10_000, 5_000, sound))
    opening = remembered.revival().opening
    assert (opening.chunks, opening.pts_us) == (6, 15_000)


def test_what_has_acted_is_in_the_request_and_not_said_again(remembered: Remembered) -> None:
    push(remembered, PROMPT, ParameterInput(ControlId("q"), "speed", 2.0))
    assert applied(remembered, "p")
    assert applied(remembered, "q")
    assert remembered.revival().opening.prompt == "a city"
    assert remembered.revival().opening.parameters == {"speed": 2.0}
    assert replayed(remembered) == []


def test_what_has_no_receipt_is_said_again_and_then_gets_its_receipt(
    remembered: Remembered,
) -> None:
    axis = AxisInput(ControlId("a"), "look", 0.5)
    push(remembered, PROMPT, axis)
    assert replayed(remembered) == [PROMPT, axis]
    assert applied(remembered, "p")


def test_what_was_superseded_is_forgotten(remembered: Remembered) -> None:
    push(remembered, PROMPT)
    assert remembered.heard(ControlSuperseded("s", ControlId("p"), None))
    assert replayed(remembered) == []
    assert remembered.revival().opening.prompt == "a lake"


def test_a_held_key_is_pressed_again_without_a_second_receipt(remembered: Remembered) -> None:
    push(remembered, LEFT)
    assert applied(remembered, "k")
    assert replayed(remembered) == [LEFT]
    assert not applied(remembered, "k")


def test_a_key_that_was_let_go_stays_so(remembered: Remembered) -> None:
    push(remembered, LEFT)
    applied(remembered, "k")
    push(remembered, KeysInput(ControlId("u"), "move", (KeyEdge("left", False),)))
    applied(remembered, "u")
    assert replayed(remembered) == []


def test_letting_go_of_all_keys_also_lets_go_of_those_without_a_receipt(
    remembered: Remembered,
) -> None:
    push(remembered, LEFT)
    applied(remembered, "k")
    late = KeysInput(ControlId("l"), "move", (KeyEdge("up", True),))
    push(remembered, late)
    remembered.sent(ReleaseKeys("s"))
    assert replayed(remembered) == [
        KeysInput(ControlId("l"), "move", (KeyEdge("up", True), KeyEdge("up", False)))
    ]


def test_the_newest_snapshot_is_gone_on_from(remembered: Remembered) -> None:
    assert remembered.heard(snapshot(1))
    remembered.heard(snapshot(5))
    revival = remembered.revival()
    assert revival.chunk == 5
    assert [durable.text for durable in revival.opening.durables] == ["5"]


@pytest.mark.parametrize(
    "message", [Interrupt(0, "s", 3), Rewind(0, "s", 3), RestoreSnapshot(0, "s", "name")]
)
def test_a_world_that_was_left_is_not_gone_back_to(remembered: Remembered, message: Asked) -> None:
    for chunk in (1, 3, 5):
        remembered.heard(snapshot(chunk))
    asked(remembered, message, chunk=3)
    assert remembered.revival().chunk == 3
    asked(remembered, message, chunk=0)
    assert remembered.revival().chunk == -1


def test_a_snapshot_that_lasts_is_given_to_the_next_worker(remembered: Remembered) -> None:
    durable = Durable("world_model", "v", {}, "3")
    remembered.answered(TakeSnapshot(0, "s", "here"), Done(1, "s", 3, 0, (durable,)))
    kept = KeptSnapshot("here", 3, (durable,))
    for _ in range(2):
        assert remembered.revival().opening.kept == (kept,)
    remembered.check(RestoreSnapshot(0, "s", "here"))


def test_a_world_that_was_restored_is_the_one_gone_back_to(remembered: Remembered) -> None:
    durable = Durable("world_model", "v", {}, "3")
    remembered.answered(TakeSnapshot(0, "s", "here"), Done(1, "s", 3, 0, (durable,)))
    for chunk in (40, 41, 42, 43):  # older ones are not kept
        remembered.heard(snapshot(chunk))
    asked(remembered, RestoreSnapshot(0, "s", "here"), chunk=3)
    revival = remembered.revival()
    assert (revival.chunk, revival.opening.durables) == (3, (durable,))


def test_a_snapshot_that_does_not_last_is_said_to_be_lost_with_its_worker(
    remembered: Remembered,
) -> None:
    restore = RestoreSnapshot(0, "s", "here")
    asked(remembered, TakeSnapshot(0, "s", "here"), chunk=3)
    remembered.check(restore)
    assert remembered.revival().opening.kept == ()
    with pytest.raises(RequestRefusedError, match="lost with the worker") as refused:
        remembered.check(restore)
    assert refused.value.code == "unknown_snapshot"
    asked(remembered, TakeSnapshot(0, "s", "here"), chunk=5)
    remembered.check(restore)


def test_after_a_reset_it_begins_again_with_the_new_seed(remembered: Remembered) -> None:
    remembered.heard(snapshot(1))
    asked(remembered, Reset(0, "s", seed=9))
    assert remembered.revival().opening.durables == ()
    assert remembered.revival().opening.seed == 9
    asked(remembered, Reset(0, "s"))
    assert remembered.revival().opening.seed == 9


def test_a_pause_and_the_absence_of_viewers_last(remembered: Remembered) -> None:
    asked(remembered, Pause(0, "s"))
    remembered.sent(Watched("s", False))
    assert remembered.revival().following == (Watched("s", False), Pause(0, "s"))
    asked(remembered, Resume(0, "s"))
    remembered.sent(Watched("s", True))
    assert remembered.revival().following == (Watched("s", True),)


def test_it_keeps_little_of_a_long_session(remembered: Remembered) -> None:
    for index in range(10_000):
        push(remembered, PromptInput(ControlId(f"p{index}"), "x"))
        remembered.heard(snapshot(index))
    assert len(replayed(remembered)) == 4096
    assert len(remembered._snapshots["world_model"]) == 4


def piece(chunk: int) -> SamplesOut:
    samples = torch.zeros((40, 1), dtype=torch.int16).numpy()
    return SamplesOut("s", "sound", chunk, 0, 0, 40, samples, loop="sounds")


def heard_of_two_loops(remembered: Remembered) -> None:
    """A chunk of pictures is as long as two and a half of sound."""
    done = Done(0, "s", stands={"world_model": -1, "sounds": -1})
    remembered.opened(done)
    for chunk in (0, 1, 2):
        remembered.heard(replace(frames(chunk, 0), loop="world_model"))
        remembered.heard(snapshot(chunk))
    for chunk in range(5):
        remembered.heard(piece(chunk))
        durable = Durable("sounds", "v", {}, str(chunk))
        remembered.heard(SnapshotOut("s", chunk, durable, 40 * (chunk + 1)))


def test_two_loops_are_taken_up_at_one_media_time_and_count_on_each(
    remembered: Remembered,
) -> None:
    heard_of_two_loops(remembered)  # pictures up to 300, sound up to 200
    revival = remembered.revival()
    assert revival.chunk == 1
    told = {durable.loop: durable.text for durable in revival.opening.durables}
    assert told == {"world_model": "1", "sounds": "4"}
    assert revival.opening.numbers == {"world_model": 3, "sounds": 5}


def test_what_two_loops_have_gone_back_behind_is_not_taken_up(remembered: Remembered) -> None:
    heard_of_two_loops(remembered)
    remembered.answered(Interrupt(0, "s", 0), Done(0, "s", 0, back_us=100))
    told = {durable.loop: durable.text for durable in remembered.revival().opening.durables}
    assert told == {"world_model": "0", "sounds": "1"}


def test_an_interrupt_of_one_loop_keeps_what_the_other_has_come_to(remembered: Remembered) -> None:
    heard_of_two_loops(remembered)
    remembered.answered(Interrupt(0, "s", 0, "sounds"), Done(0, "s", 0, back_us=80))
    assert remembered.revival().opening.durables[1].text == "1"
    remembered.heard(SnapshotOut("s", 9, Durable("sounds", "v", {}, "9"), 400))
    assert remembered.revival().chunk == 2
