"""Sessions that run for long: positions stay in range, memory stays flat."""

import gc
import tracemalloc

from driving import all_blocks_are_free, prompt, stamps
from loop_rig import stub_rig
from stub_model import WINDOW, prompt_mark

POSITIONS = 32


def test_ten_times_the_position_table_with_prompt_switches_stays_in_range() -> None:
    rig = stub_rig()
    driver = rig.open()
    for switch in range(10):
        driver.push([prompt(f"prompt {switch}", f"p{switch}")])
        rig.run_chunks("s1", POSITIONS)
        state = driver.state
        assert len(state.blocks) <= WINDOW
        assert stamps(rig)[-1].prompt == prompt_mark(f"prompt {switch}")
    assert [stamp.chunk for stamp in stamps(rig)] == list(range(10 * POSITIONS))
    rig.close("s1")
    assert all_blocks_are_free(rig)


def test_memory_is_flat_over_a_long_run() -> None:
    rig = stub_rig()
    driver = rig.open()

    def run(chunks: int) -> None:
        for index in range(chunks):
            driver.push([prompt(f"prompt {index}", f"p{index}")])
            rig.run_chunks("s1", 1)
            rig.heard["s1"].clear()
            rig.ran.clear()

    run(20)
    tracemalloc.start()
    run(20)
    gc.collect()  # also empties the interpreter's free lists, which fill up at first
    before, _ = tracemalloc.get_traced_memory()
    run(200)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 64 * 1024
