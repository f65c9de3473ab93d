"""The bench, on the stub."""

import json
import mmap
import signal
from pathlib import Path

import pytest
from counted_progress import ProgressLog
from talking_stub import LOCATION

from reverie.bench import BenchOptions, BenchReport, as_table, run_bench, write_json
from reverie.bench.machine import resident_mib
from reverie.bench.progress import Progress
from reverie.bench.sizes import QUICK_S, SHARES, sized
from reverie.cli import main
from reverie.models.contract.errors import UnknownModelError


@pytest.mark.timeout(120)
async def test_everything_is_measured_and_written_down(tmp_path: Path) -> None:
    options = BenchOptions(
        LOCATION, rounds=1, chunks=6, presses=3, frames=240, recordings=1, speech_turns=2
    )
    kept: list[BenchReport] = []
    told = ProgressLog()
    report = await run_bench(options, told, kept.append)
    assert report.model == "stub"
    assert report.complete
    assert report.throughput is not None
    assert report.throughput.ratio > 0
    assert report.first_frame_ms is not None
    assert report.first_frame_ms > 0
    assert report.reaction is not None
    assert 0 < report.reaction.steps_to_act <= report.reaction.steps_to_frame <= 24
    assert report.busy_ratio is not None
    assert report.busy_ratio > 0
    assert report.recording is not None
    assert report.recording.shared > 0
    assert report.recording.alone > 0
    assert report.recording.kbit_per_s > 10
    assert report.narration is not None
    assert report.narration.ratio > 0
    assert report.memory is not None
    assert report.memory.frames == 240
    assert report.memory.settled_mib > 10

    assert told.said[:2] == ["starting a worker", "timing the model"]
    assert told.sum == pytest.approx(told.total, rel=0.25)
    assert kept[0].throughput == report.throughput
    assert kept[0].recording is None
    assert "stopped before its end" in as_table(kept[0])
    assert "| size of the recording" not in as_table(kept[0])

    table = as_table(report)
    assert "runtime over bare loop" in table
    assert "while recorded" in table
    assert report.machine.processor in table

    write_json(report, tmp_path / "bench.json")
    written = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))
    assert written["throughput"]["ratio"] == report.throughput.ratio
    assert written["machine"]["cores"] == report.machine.cores


async def test_a_missing_model_is_named() -> None:
    with pytest.raises(UnknownModelError, match="no-such-model"):
        await run_bench(BenchOptions("no-such-model"))


@pytest.mark.timeout(120)
def test_a_stopped_bench_reports_its_results_so_far(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "bench.json"

    def stop(self: Progress, what: str) -> None:
        if what == "memory":
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Progress, "say", stop)
    arguments = ["--quick", "--frames", "100000", "--json", str(file)]
    assert main(["bench", "--model", LOCATION, *arguments]) == 130
    said = capsys.readouterr()
    assert "stopped before its end" in said.out
    assert "| size of the recording |" in said.out
    written = json.loads(file.read_text(encoding="utf-8"))
    assert written["complete"] is False
    assert written["memory"] is None


def test_a_full_run_shows_20000_frames_of_the_model_itself() -> None:
    thorough = BenchOptions.chosen("pocket", quick=False, frames=None)
    assert (thorough.model, thorough.frames) == ("pocket", 20_000)
    assert sized(thorough, 0.1, 1) == thorough


@pytest.mark.parametrize("chunk_frames", [1, 4])
def test_a_quick_run_is_as_small_as_its_time_asks_for(chunk_frames: int) -> None:
    quick = BenchOptions.chosen("pocket", quick=True, frames=None)
    assert sized(quick, 1000.0, chunk_frames) == quick
    before = quick.total_frames(chunk_frames)
    for fps in (30.0, 10.0, 5.0):
        small = sized(quick, fps, chunk_frames)
        frames = small.total_frames(chunk_frames)
        assert frames <= before
        assert frames <= fps * QUICK_S or small.share == min(SHARES)
        before = frames
    assert sized(quick, 30.0, 1) == quick
    assert sized(quick, 0.1, chunk_frames).share == min(SHARES)


@pytest.mark.parametrize("frames", ["1", "0", "-5", "many", "2.5"])
def test_an_invalid_number_of_frames_is_refused(
    frames: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "--frames", frames])
    assert ended.value.code == 2
    assert "is not a number of frames" in capsys.readouterr().err


def test_a_quick_run_measures_less() -> None:
    quick = BenchOptions.chosen("pocket", quick=True, frames=None)
    thorough = BenchOptions.chosen("pocket", quick=False, frames=None)
    assert thorough.frames == 20_000
    assert quick.frames < thorough.frames
    assert quick.rounds * quick.chunks < thorough.rounds * thorough.chunks
    assert BenchOptions.chosen("pocket", quick=True, frames=7).frames == 7


def test_memory_grows_with_what_we_hold() -> None:
    before_mib = resident_mib()
    with mmap.mmap(-1, 64 * 2**20) as held:  # not of the heap, which may have room already
        held.write(b"x" * len(held))
        assert resident_mib() - before_mib > 48
