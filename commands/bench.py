"""`reverie bench`: the runtime on this machine."""

import argparse
import asyncio
from pathlib import Path

from reverie.commands.grammar import FAILED, Commands, complain


def add(commands: Commands) -> None:
    """Add the command that measures this machine."""
    bench = commands.add_parser(
        "bench",
        help="measure the runtime on this machine",
        description="Measure the runtime against a bare loop over the same model in one run, the "
        "steps from a command to the first frame that it acts on, the time to a first frame, and "
        "memory over a long session.",
    )
    bench.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    bench.add_argument("--model", default="pocket", help="default: %(default)s")
    bench.add_argument("--quick", action="store_true", help="about a minute, with rougher numbers")
    bench.add_argument(
        "--frames", type=int, help="length of the memory run (default: 20000; 2000 with --quick)"
    )
    bench.add_argument(
        "--media",
        action="store_true",
        help="instead, from a drawn picture to its pixels in headless Chromium, beside bare loops",
    )
    bench.set_defaults(command=_bench)


def _bench(chosen: argparse.Namespace) -> int:
    from reverie.bench import BenchOptions, as_table, run_bench, write_json
    from reverie.gpu_pool.errors import PoolError
    from reverie.models.errors import ModelError

    if chosen.media:
        return _bench_media(chosen)
    options = BenchOptions.chosen(chosen.model, quick=chosen.quick, frames=chosen.frames)
    try:
        report = asyncio.run(run_bench(options))
    except (ModelError, PoolError) as error:
        return complain(str(error), FAILED)
    print(as_table(report))
    if chosen.json is not None:
        write_json(report, chosen.json)
    return 0


def _bench_media(chosen: argparse.Namespace) -> int:
    from reverie.bench.media_report import (
        MediaOptions,
        as_media_table,
        run_media_bench,
        write_media_json,
    )

    try:
        report = asyncio.run(run_media_bench(MediaOptions.chosen(quick=chosen.quick)))
    except ModuleNotFoundError as error:
        return complain(f"--media drives a browser: {error}; pip install playwright", FAILED)
    print(as_media_table(report))
    if chosen.json is not None:
        write_media_json(report, chosen.json)
    return 0
