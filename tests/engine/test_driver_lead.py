"""How a driver holds generation back, and takes controls while it does."""

from driving import prompt, stamps, worlds
from loop_rig import stub_rig
from stub_model import prompt_mark, stub_request

from reverie.engine.driver import DriverOptions
from reverie.models.contract.spec import Lead


def test_the_next_chunk_is_prepared_but_not_committed_before_the_viewer_has_seen_more() -> None:
    rig = stub_rig(seen_at_once=False)
    driver = rig.open()
    rig.run_idle()
    assert len(rig.frames("s1")) == 1
    assert rig.step() == []
    driver.seen(0, rig.clock())
    rig.step()
    rig.step()
    assert len(rig.frames("s1")) == 2, "the denoise step had not been done ahead"


def test_a_longer_lead_lets_more_chunks_be_put_out() -> None:
    rig = stub_rig(seen_at_once=False)
    rig.open(options=DriverOptions(lead=Lead(3)))
    rig.run_idle()
    assert len(rig.frames("s1")) == 3


def test_what_is_typed_while_held_at_the_lead_shows_in_the_next_chunk() -> None:
    rig = stub_rig(seen_at_once=False)
    driver = rig.open()
    rig.run_idle()
    driver.push([prompt("a sea")])
    assert rig.run_idle() == 1
    driver.seen(0, rig.clock())
    rig.run_idle()
    assert stamps(rig)[1].prompt == prompt_mark("a sea")


def test_a_chunk_held_at_the_lead_is_planned_again_once_only() -> None:
    rig = stub_rig(seen_at_once=False)
    driver = rig.open()
    rig.run_idle()
    ran = 0
    for index in range(100):
        driver.push([prompt(f"prompt {index}", f"p{index}")])
        ran += rig.run_idle()
    assert ran == 1
    driver.seen(0, rig.clock())
    rig.run_chunks("s1", 1)
    assert stamps(rig)[1].prompt == prompt_mark("prompt 0")
    driver.seen(1, rig.clock())
    rig.run_chunks("s1", 1)
    assert stamps(rig)[2].prompt == prompt_mark("prompt 99")


def test_a_chunk_held_at_the_lead_is_not_planned_again_when_the_viewer_would_wait_for_it() -> None:
    rig = stub_rig(seen_at_once=False)
    driver = rig.open(stub_request(step_ms=60.0))
    rig.run_idle()
    candidate = rig.clock.now_us
    driver.push([prompt("a sea")])
    assert driver.ready(candidate) is None


def test_without_a_viewer_it_stops_at_the_next_chunk() -> None:
    rig = stub_rig()
    driver = rig.open()
    rig.run_chunks("s1", 1)
    rig.step()
    rig.step()
    driver.watched(False)
    rig.run_idle()
    assert len(rig.frames("s1")) == 2
    driver.watched(True)
    rig.run_chunks("s1", 1)
    assert worlds(rig) == [0, 1, 2]


def test_the_deadline_is_when_the_viewer_runs_out() -> None:
    rig = stub_rig(seen_at_once=False)
    driver = rig.open(options=DriverOptions(lead=Lead(2)))
    first = driver.ready(5)
    assert first is not None
    assert (first.deadline_us, first.running) == (5, False)
    rig.run_chunks("s1", 1)
    shown_us = rig.clock.now_us
    later = driver.ready(shown_us)
    assert later is not None
    assert (later.deadline_us, later.running) == (shown_us + 100_000, False)
    rig.step()
    rig.step()
    begun = driver.ready(shown_us)
    assert begun is not None
    assert begun.running


def test_a_model_that_is_too_fast_for_a_viewer_who_only_hears_keeps_to_the_media_time() -> None:
    """The viewer says of every chunk at once that it was seen, as its event comes."""
    rig = stub_rig(seen_at_once=False)
    driver = rig.open()
    told = 0
    start_us = rig.clock()
    for _ in range(20_000):
        if not rig.step():
            wake_us = driver.wake_us
            assert wake_us is not None, "it is woken though nothing comes"
            rig.clock.now_us = max(wake_us, rig.clock.now_us + 1)
        for out in rig.frames("s1")[told:]:
            driver.seen(out.header.chunk, rig.clock(), in_time=True)
            told += 1
    passed_us = rig.clock() - start_us
    media_us = sum(len(out.frames) * out.header.duration_us for out in rig.frames("s1"))
    chunk_us = len(rig.frames("s1")[0].frames) * rig.frames("s1")[0].header.duration_us
    assert told > 20
    assert passed_us - 2 * chunk_us <= media_us <= passed_us + 2 * chunk_us
