"""`reverie bench`: the runtime on this machine."""

import argparse
from pathlib import Path

from reverie.commands.grammar import FAILED, Commands, complain
from reverie.commands.stopping import STOPPED, stopped_as_by_ctrl_c


def add(commands: Commands) -> None:
    """Add the command that measures this machine."""
    bench = commands.add_parser(
        "bench",
        help="measure the runtime on this machine",
        description="Measure the runtime and a bare loop over the same model in one run; the steps "
        "from a command to the first frame that shows it; the time to a first frame; and memory "
        "over a session of 20,000 frames. This takes a quarter of an hour where the model makes "
        "30 frames a second; a progress bar shows the time left. When the command is stopped "
        "(Ctrl-C, SIGTERM) it keeps its results so far and exits with status 130.",
    )
    bench.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the numbers to this file"
    )
    bench.add_argument("--model", default="pocket", help="default: %(default)s")
    bench.add_argument(
        "--quick",
        action="store_true",
        help="about two minutes, with rougher numbers: the model is timed first, and a slow model "
        "is measured over fewer frames",
    )
    bench.add_argument(
        "--frames",
        type=_frames,
        metavar="N",
        help="length of the memory run (default: 20000; 400 at most with --quick)",
    )
    instead = bench.add_mutually_exclusive_group()
    instead.add_argument(
        "--media",
        action="store_true",
        help="instead measure the path of a picture to its pixels in headless Chromium, and bare "
        "loops of encoders for comparison",
    )
    instead.add_argument(
        "--line",
        action="store_true",
        help="instead measure pictures and keys through a line of long delay, loss and little "
        "rate between two network namespaces, and bare loops for comparison; needs root and `ip`; "
        "half an hour, or four minutes with --quick",
    )
    bench.set_defaults(command=_bench)


def _frames(text: str) -> int:
    """Read `--frames`: a number of frames, at least 2."""
    frames = int(text) if text.isascii() and text.isdigit() else 0
    if not 2 <= frames <= 10**9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of frames (at least 2)")
    return frames


def _bench(chosen: argparse.Namespace) -> int:
    import asyncio

    from reverie.bench import BenchOptions, BenchReport, as_table, run_bench, write_json
    from reverie.bench.progress import Progress
    from reverie.gpu_pool.wire.errors import PoolError
    from reverie.models.contract.errors import ModelError

    if chosen.media:
        return _bench_media(chosen)
    if chosen.line:
        return _bench_line(chosen)
    options = BenchOptions.chosen(chosen.model, quick=chosen.quick, frames=chosen.frames)
    found: list[BenchReport] = []
    try:
        with stopped_as_by_ctrl_c(), Progress() as progress:
            found.append(asyncio.run(run_bench(options, progress, found.append)))
    except (ModelError, PoolError) as error:
        return complain(str(error), FAILED)
    except KeyboardInterrupt:
        if not found:
            return complain("stopped before anything was measured", STOPPED)
    report = found[-1]
    print(as_table(report))
    if chosen.json is not None:
        write_json(report, chosen.json)
    return 0 if report.complete else STOPPED


def _bench_media(chosen: argparse.Namespace) -> int:
    import asyncio

    from reverie.bench.media_report import (
        MediaOptions,
        MediaReport,
        as_media_table,
        run_media_bench,
        write_media_json,
    )
    from reverie.bench.progress import Progress

    options, found = MediaOptions.chosen(quick=chosen.quick), list[MediaReport]()
    try:
        with stopped_as_by_ctrl_c(), Progress() as progress:
            found.append(asyncio.run(run_media_bench(options, progress, found.append)))
    except ModuleNotFoundError as error:
        return complain(f"--media needs a browser: {error}; pip install playwright", FAILED)
    except KeyboardInterrupt:
        if not found:
            return complain("stopped before anything was measured", STOPPED)
    report = found[-1]
    print(as_media_table(report))
    if chosen.json is not None:
        write_media_json(report, chosen.json)
    return 0 if report.complete else STOPPED


def _bench_line(chosen: argparse.Namespace) -> int:
    import asyncio

    from reverie.bench.line import LineError
    from reverie.bench.over_line.far_end import FarEndError
    from reverie.bench.over_line.measure import run_line_bench
    from reverie.bench.over_line.near_end import NearEndError
    from reverie.bench.over_line.report import LineReport, as_line_table, write_line_json
    from reverie.bench.over_line.rows import LineOptions
    from reverie.bench.progress import Progress

    options, found = LineOptions.chosen(quick=chosen.quick), list[LineReport]()
    try:
        with stopped_as_by_ctrl_c(), Progress() as progress:
            found.append(asyncio.run(run_line_bench(options, progress, found.append)))
    except ModuleNotFoundError as error:
        return complain(f"--line needs a browser: {error}; pip install playwright", FAILED)
    except (LineError, NearEndError) as error:
        return complain(str(error), FAILED)
    except FarEndError as error:
        if found:
            print(as_line_table(found[-1]))
        return complain(str(error), FAILED)
    except KeyboardInterrupt:
        if not found:
            return complain("stopped before anything was measured", STOPPED)
    report = found[-1]
    print(as_line_table(report))
    if chosen.json is not None:
        write_line_json(report, chosen.json)
    return 0 if report.complete else STOPPED
