"""Records of behaviour: of chunks that were put out, and of no other."""

from typing import Any

from driving import UNITS, keys, prompt
from loop_rig import Rig, stub_rig
from stub_model import stub_request

from reverie.engine.driver import DriverOptions, LoopDriver
from reverie.models.contract.loop import LoopRequest

RECORDED = DriverOptions(history_chunks=4, capture=True)


def recorded(rig: Rig, request: LoopRequest | None = None) -> LoopDriver[Any]:
    return rig.open(request, RECORDED)


def test_nothing_is_recorded_unless_it_is_asked_for() -> None:
    rig = stub_rig()
    driver = rig.open()
    rig.run_chunks("s1", 2)
    assert driver.take_behavior() == []


def test_a_record_says_what_acted_and_under_which_weights_and_seed() -> None:
    rig = stub_rig()
    driver = recorded(rig, stub_request("s1", seed=5, brightness=0.25))
    driver.push([keys("+up"), prompt("rain")])
    rig.run_chunks("s1", 1)
    driver.push([keys("-up")])
    rig.run_chunks("s1", 1)
    first, second = driver.take_behavior()
    assert (first.session, first.loop, first.chunk) == ("s1", rig.kernel.spec.name, 0)
    assert (first.seed, first.weights_version) == (5, rig.instance.weights_version)
    assert first.parameters["brightness"] == 0.25
    [controls] = first.controls
    assert (controls.prompt, controls.keys["move"].held) == ("rain", ("up",))
    [controls] = second.controls
    assert (controls.prompt, controls.keys["move"].held) == (None, ())
    assert driver.take_behavior() == []


def test_new_weights_are_named_by_the_chunks_that_they_made() -> None:
    rig = stub_rig()
    driver = recorded(rig)
    rig.run_chunks("s1", 1)
    old, rig.instance.weights_version = rig.instance.weights_version, "new"
    rig.run_chunks("s1", 1)
    assert [record.weights_version for record in driver.take_behavior()] == [old, "new"]


def test_a_chunk_that_is_dropped_before_it_is_seen_leaves_no_record() -> None:
    rig = stub_rig()
    driver = recorded(rig)
    rig.run_chunks("s1", 1)
    for _ in range(3):  # the context pass, and both denoise steps: the chunk is committed
        rig.step()
    driver.interrupt(0)
    driver.push([keys("+left")])
    rig.run_chunks("s1", 1)
    records = driver.take_behavior()
    assert [record.chunk for record in records] == [0, 1]
    assert records[1].controls[0].keys["move"].held == ("left",)


def test_a_reset_with_another_seed_is_recorded_with_it() -> None:
    rig = stub_rig()
    driver = recorded(rig, stub_request("s1", seed=1))
    rig.run_chunks("s1", 1)
    driver.reset(2)
    rig.run_chunks("s1", 1)
    assert [record.seed for record in driver.take_behavior()] == [1, 2]


def test_a_unit_that_was_rolled_back_is_recorded_once() -> None:
    rig = stub_rig(seen_at_once=False)
    driver = recorded(rig)
    for _ in range(UNITS + 1):
        rig.step()
    driver.push([keys("+left")])  # the chunk that waits at the lead takes it up
    for _ in range(3):
        rig.step()
    driver.seen(0, 0)
    rig.run_chunks("s1", 1)
    last = driver.take_behavior()[-1]
    assert (last.chunk, len(last.controls)) == (1, 1)
    assert last.controls[0].keys["move"].held == ("left",)
