"""`reverie eval`: the quality of a model that ships with reverie."""

import argparse
from pathlib import Path

from reverie.commands.grammar import FAILED, Commands, complain
from reverie.commands.stopping import STOPPED, stopped_as_by_ctrl_c


def add(commands: Commands) -> None:
    """Add the command that measures a model."""
    evaluation = commands.add_parser(
        "eval", help="measure the quality of a model that ships with reverie"
    )
    families = evaluation.add_subparsers(title="models", metavar="MODEL", required=True)
    pocket = families.add_parser(
        "pocket",
        help="the embedded world model",
        description="Play the embedded model through the serving loop on maps that are not in its "
        "training data, and compare its frames with the simulator's truth. The exit status is 1 "
        "when a bar is missed by more than its interval and the miss is not a known shortfall; "
        "only the number of steps that is served counts. A full run takes about ten minutes for "
        "each number of steps on two idle cores at 30 frames a second; a progress bar shows the "
        "time left. When the command is stopped (Ctrl-C, SIGTERM) it keeps its results so far and "
        "exits with status 130.",
    )
    pocket.add_argument(
        "--quick",
        action="store_true",
        help="fewer trials with wider intervals, as many as fit into --minutes: the model is timed "
        "first, and the longest trials of a slow model are left out",
    )
    pocket.add_argument(
        "--minutes",
        type=_minutes,
        default=2.0,
        metavar="N",
        help="how long a quick run may take, without loading (default: %(default)g)",
    )
    pocket.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the numbers to this file"
    )
    pocket.add_argument(
        "--steps",
        type=_steps,
        default=(),
        metavar="N,N",
        help="numbers of denoise steps to compare, such as 1,2,4 (default: the one that is served)",
    )
    pocket.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="weights (default: the shipped weights)"
    )
    pocket.add_argument(
        "--workers",
        type=int,
        default=0,
        help="worker processes (default: one for each core, at most 4)",
    )
    pocket.add_argument(
        "--strip",
        type=Path,
        metavar="PNG",
        help="only draw frames of a few walks into this file; nothing is measured",
    )
    pocket.set_defaults(command=_eval_pocket)


def _steps(text: str) -> tuple[int, ...]:
    """Read `--steps`: different numbers, separated by commas."""
    from reverie.models.pocket.network.sampler import MAX_STEPS

    try:
        steps = tuple(int(part) for part in text.split(","))
    except ValueError:
        steps = ()
    if not steps or len(set(steps)) < len(steps) or not all(1 <= n <= MAX_STEPS for n in steps):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of different numbers of steps, each from 1 to {MAX_STEPS}"
        )
    return steps


def _minutes(text: str) -> float:
    """Read `--minutes`: a number above 0."""
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes above 0")
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
        return complain("stopped: the table above shows the results so far", STOPPED)
    for row in report.missed:
        complain(f"{row.measure.title}: the bar is missed by more than the interval", FAILED)
    return FAILED if report.missed else 0
