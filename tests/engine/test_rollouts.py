"""Sessions that a script steers: in step, recorded, and the same again when done again."""

import pytest
from loop_rig import Rig, stub_rig
from stub_model import Fault, read_stamp, stub_request

from reverie.engine.errors import RolloutError, UnknownControlError
from reverie.engine.rollouts import RolloutChunk, Rollouts, roll_out
from reverie.models.contract.behavior import ActionRecord


@pytest.fixture
def rig() -> Rig:
    return stub_rig()


@pytest.fixture
def rollouts(rig: Rig) -> Rollouts:
    return Rollouts(rig.kernel, rig.instance)


def script(session: str, chunk: int) -> ActionRecord:
    held = ("left",) if chunk in (1, 2) else ()
    return ActionRecord(prompt=f"{session} {chunk}" if chunk == 2 else None, held={"move": held})


def free(rig: Rig) -> bool:
    assert rig.instance.blocks is not None
    return rig.instance.blocks.free == rig.instance.blocks.count


def test_every_session_makes_every_chunk_under_its_script(rig: Rig, rollouts: Rollouts) -> None:
    requests = [stub_request(session) for session in ("a", "b", "c")]
    made = roll_out(rollouts, requests, script, 4)
    assert list(made) == ["a", "b", "c"]
    for session, chunks in made.items():
        assert [one.record.chunk for one in chunks] == [0, 1, 2, 3]
        assert {(one.record.session, one.record.loop) for one in chunks} == {
            (session, rig.kernel.spec.name)
        }
        held = [read_stamp(one.frames["video"][0]).held for one in chunks]
        assert held == [frozenset(), {"left"}, {"left"}, frozenset()]
        prompts = [one.record.controls[0].prompt for one in chunks]
        assert prompts == [None, None, f"{session} 2", None]
    assert free(rig)


def test_a_session_is_the_same_alone_and_with_others(rig: Rig, rollouts: Rollouts) -> None:
    alone = roll_out(rollouts, [stub_request("a")], script, 3)["a"]
    together = roll_out(rollouts, [stub_request(s) for s in ("b", "a", "c")], script, 3)["a"]
    assert pixels(alone) == pixels(together)


def test_a_session_can_continue_from_the_state_of_another(rig: Rig, rollouts: Rollouts) -> None:
    rollouts.open(stub_request("a"))
    for _ in range(3):
        rollouts.advance({})
    start = rollouts.durable("a")
    rollouts.open(stub_request("b"), start)
    after = rollouts.advance({})
    assert read_stamp(after["b"].frames["video"][0]).chunk == 3
    assert after["b"].record.chunk == 0
    rollouts.close_all()
    assert free(rig)


def test_a_session_that_fails_for_good_says_so(rig: Rig, rollouts: Rollouts) -> None:
    rollouts.open(stub_request("a", fault=Fault.NAN, fault_chunk=1, fault_always=1))
    rollouts.advance({})
    with pytest.raises(RolloutError, match="session a: "):
        rollouts.advance({})
    rollouts.close_all()
    assert free(rig)


def test_a_step_that_fails_once_is_repeated(rollouts: Rollouts) -> None:
    request = stub_request("a", fault=Fault.NAN, fault_chunk=1)
    sound = roll_out(rollouts, [stub_request("a")], script, 3)["a"]
    failing = roll_out(rollouts, [request], script, 3)["a"]
    assert [one.record.chunk for one in failing] == [0, 1, 2]
    assert stamps(failing) == stamps(sound)


def test_an_unknown_key_is_refused(rig: Rig, rollouts: Rollouts) -> None:
    with pytest.raises(UnknownControlError):
        roll_out(rollouts, [stub_request("a")], lambda *_: ActionRecord(held={"move": ("fly",)}), 1)
    assert free(rig)


def pixels(chunks: list[RolloutChunk]) -> list[bytes]:
    return [one.frames["video"].tobytes() for one in chunks]


def stamps(chunks: list[RolloutChunk]) -> list[tuple[object, ...]]:
    found = [read_stamp(one.frames["video"][0]) for one in chunks]
    return [(stamp.chunk, stamp.held, stamp.prompt, stamp.seed) for stamp in found]
