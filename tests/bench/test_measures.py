"""The bench, on the stub."""

import json
from pathlib import Path

import pytest
from talking_stub import LOCATION

from reverie.bench import BenchOptions, as_table, run_bench, write_json
from reverie.bench.machine import resident_mib
from reverie.models.errors import UnknownModelError


@pytest.mark.timeout(120)
async def test_everything_is_measured_and_written_down(tmp_path: Path) -> None:
    options = BenchOptions(LOCATION, rounds=1, chunks=6, presses=3, frames=240)
    report = await run_bench(options)
    assert report.model == "stub"
    assert report.throughput.ratio > 0
    assert report.first_frame_ms > 0
    assert report.reaction is not None
    assert 0 < report.reaction.steps_to_act <= report.reaction.steps_to_frame <= 24
    assert report.busy_ratio is not None
    assert report.busy_ratio > 0
    assert report.recording.shared > 0
    assert report.recording.alone > 0
    assert report.recording.kbit_per_s > 10
    assert report.narration is not None
    assert report.narration.ratio > 0
    assert report.narration.longest_wait_units <= 1
    assert [run.model for run in report.memory] == ["stub", "stripes"]
    assert all(run.settled_mib > 10 for run in report.memory)

    table = as_table(report)
    assert "runtime over bare loop" in table
    assert "while recorded" in table
    assert report.machine.processor in table

    write_json(report, tmp_path / "bench.json")
    written = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))
    assert written["throughput"]["ratio"] == report.throughput.ratio
    assert written["machine"]["cores"] == report.machine.cores


async def test_a_model_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownModelError, match="no-such-model"):
        await run_bench(BenchOptions("no-such-model"))


def test_a_quick_run_measures_less() -> None:
    quick = BenchOptions.chosen("pocket", quick=True, frames=None)
    thorough = BenchOptions.chosen("pocket", quick=False, frames=None)
    assert thorough.frames == 20_000
    assert quick.frames < thorough.frames
    assert quick.rounds * quick.chunks < thorough.rounds * thorough.chunks
    assert BenchOptions.chosen("pocket", quick=True, frames=7).frames == 7


def test_memory_grows_with_what_we_hold() -> None:
    before_mib = resident_mib()
    held = bytearray(b"x" * (64 * 2**20))
    assert resident_mib() - before_mib > 48
    del held
