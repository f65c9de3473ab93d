"""`reverie eval`: how good a model is that ships."""

import argparse
from pathlib import Path

from reverie.commands.grammar import FAILED, Commands, complain
from reverie.commands.stopping import STOPPED, stopped_as_by_ctrl_c


def add(commands: Commands) -> None:
    """Add the command that measures a model."""
    evaluation = commands.add_parser("eval", help="measure how good a model is that ships")
    families = evaluation.add_subparsers(title="models", metavar="MODEL", required=True)
    pocket = families.add_parser(
        "pocket",
        help="the embedded world model",
        description="Play the embedded model through the serving loop, on maps that no training "
        "saw, and hold what it shows against the simulator's truth. Status 1 when a bar of the "
        "steps that are served is missed by more than its interval, and is not known to be. A "
        "full run takes about ten minutes on two quiet cores for each number of steps, at 30 "
        "frames a second, and longer where the model is slower: the bar says how long. What is "
        "found is kept when it is stopped (Ctrl-C, SIGTERM): status 130.",
    )
    pocket.add_argument(
        "--quick",
        action="store_true",
        help="fewer trials, with wider intervals, and only what fits into --minutes: the model is "
        "timed first, and the longest trials are left out where it is slow",
    )
    pocket.add_argument(
        "--minutes",
        type=_minutes,
        default=2.0,
        metavar="N",
        help="how long a quick run may take, loading apart (default: %(default)g)",
    )
    pocket.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    pocket.add_argument(
        "--steps",
        type=_steps,
        default=(),
        metavar="N,N",
        help="denoise steps to compare, such as 1,2,4 (default: those that are served)",
    )
    pocket.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="weights (default: those that ship)"
    )
    pocket.add_argument(
        "--workers",
        type=int,
        default=0,
        help="processes that play (default: one a core, 4 at most)",
    )
    pocket.add_argument(
        "--strip",
        type=Path,
        metavar="PNG",
        help="draw frames of a few walks into this file, and measure nothing",
    )
    pocket.set_defaults(command=_eval_pocket)


def _steps(text: str) -> tuple[int, ...]:
    """Read `--steps`: different numbers, with commas between them."""
    from reverie.models.pocket.network.sampler import MAX_STEPS

    try:
        steps = tuple(int(part) for part in text.split(","))
    except ValueError:
        steps = ()
    if not steps or len(set(steps)) < len(steps) or not all(1 <= n <= MAX_STEPS for n in steps):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of steps, 1 to {MAX_STEPS}")
    return steps


def _minutes(text: str) -> float:
    """Read `--minutes`: a time."""
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of minutes, above 0")
    return minutes


def _eval_pocket(chosen: argparse.Namespace) -> int:
    from reverie.bench.progress import Progress
    from reverie.engine.errors import EngineError
    from reverie.evaluation import (
        EvaluationOptions,
        as_table,
        draw_strip,
        run_evaluation,
        write_json,
    )
    from reverie.models.contract.errors import ModelError

    checkpoint = None if chosen.checkpoint is None else str(chosen.checkpoint)
    options = EvaluationOptions(
        chosen.quick, chosen.steps, checkpoint, chosen.workers, minutes=chosen.minutes
    )
    try:
        if chosen.strip is not None:
            draw_strip(chosen.strip, options)
            return 0
        with stopped_as_by_ctrl_c(), Progress() as progress:
            report = run_evaluation(options, progress)
    except KeyboardInterrupt:
        return complain("stopped before anything was measured", STOPPED)
    except (ModelError, EngineError, OSError) as error:
        return complain(str(error), FAILED)
    print(as_table(report))
    if chosen.json is not None:
        write_json(report, chosen.json)
    if report.stopped:
        return complain("stopped: what was measured by then is above", STOPPED)
    for row in report.missed:
        complain(f"{row.measure.title}: the bar is missed by more than the interval", FAILED)
    return FAILED if report.missed else 0
