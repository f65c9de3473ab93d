"""The command `reverie`: serve, models, train, eval and bench.

Each command imports what it needs when it runs, so that `--help` answers at once.
"""

import argparse
import asyncio
import logging
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reverie import __version__

if TYPE_CHECKING:
    from reverie.config import Deployment, Setting
    from reverie.host import Engine
    from reverie.rtc.server import Server

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

FAILED = 1
MISUSED = 2

_ABOUT = """\
A realtime session server for interactive streaming generation: open a session, and what you say,
type or press changes what is generated next."""

_EXAMPLES = """\
examples:
  reverie serve                            play the embedded model on http://127.0.0.1:8000
  reverie serve --port 9000 --config deployment.yaml
  reverie serve --model examples/plasma.py:family
  reverie models                           what can be served
  reverie bench --quick --json bench.json  measure this machine in about a minute
  reverie train pocket --minutes 60        train the embedded model anew, for an hour
  reverie eval pocket --quick              how good the embedded model is, in two minutes

Every setting can also come from a file (--config) or from variables such as
REVERIE_SERVER__PORT=9000; see the README."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 1 when it failed, 2 when misused."""
    chosen = make_parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = chosen.command
    try:
        return command(chosen)
    except KeyboardInterrupt:
        return 130


def make_parser() -> argparse.ArgumentParser:
    """Return the grammar of the command line; `command` of what it parses runs it."""
    parser = argparse.ArgumentParser(
        "reverie",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"reverie {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_serve(commands)
    _add_models(commands)
    _add_train(commands)
    _add_eval(commands)
    _add_bench(commands)
    return parser


def _add_serve(commands: "Commands") -> None:
    serve = commands.add_parser(
        "serve",
        help="serve models to browsers and programs",
        description="Serve models over HTTP and WebSocket, with a page to play in. The first "
        "Ctrl-C lets running sessions finish their chunk, the second, a second later, leaves at "
        "once.",
    )
    serve.add_argument("--config", type=Path, metavar="FILE", help="a deployment in YAML")
    serve.add_argument("--host", help="address to listen on (default: 127.0.0.1, this machine)")
    serve.add_argument("--port", type=int, help="port to listen on (default: 8000; 0: a free one)")
    serve.add_argument(
        "--model",
        action="append",
        type=_model,
        metavar="MODEL",
        help="serve this one: an installed model, package.module:Name or path/to/file.py:Name, "
        "with another name as NAME=MODEL; may be repeated (default: pocket)",
    )
    serve.add_argument(
        "--checkpoint",
        action=_CheckpointOfModel,
        metavar="PATH",
        help="weights of the --model before it (default: those that ship with the model)",
    )
    serve.add_argument(
        "--lora",
        action=_AdapterOfModel,
        metavar="NAME=PATH",
        help="a LoRA that sessions of the --model before it can choose, by the parameter "
        "lora_NAME; may be repeated",
    )
    serve.add_argument(
        "--lora-merged",
        action=_AdapterOfModel,
        metavar="PATH",
        help="a LoRA that becomes part of the weights of the --model before it; may be repeated",
    )
    serve.add_argument(
        "--decoder",
        action=_DecoderOfModel,
        metavar="KIND[=PATH]",
        help="decode the latents of the --model before it by another decoder, such as taehv, "
        "with weights at PATH (default: those beside the checkpoint)",
    )
    serve.add_argument(
        "--inline",
        action="store_true",
        help="run models on a thread of this process, for debugging, and not in workers",
    )
    serve.add_argument("--verbose", action="store_true", help="say more in the log")
    serve.set_defaults(command=_serve)


def _add_models(commands: "Commands") -> None:
    models = commands.add_parser(
        "models",
        help="list what can be served",
        description="List the installed models: what they run, what they can do, the memory that "
        "a session takes, and licences. No weights are read for it.",
    )
    models.add_argument(
        "--load", action="store_true", help="load each as well, to see whether it can be served"
    )
    models.set_defaults(command=_models)
    commands_of = models.add_subparsers(title="commands", metavar="COMMAND")
    check = commands_of.add_parser(
        "check",
        help="say whether a checkpoint fits, without loading it",
        description="Compare the tensors of a checkpoint with the model that they imply: names, "
        "shapes, types. Only headers are read. Exit status 1 when it does not fit.",
    )
    check.add_argument("path", metavar="PATH", help="a folder or a file")
    check.add_argument(
        "--model", metavar="MODEL", default="wan", help="which family (default: %(default)s)"
    )
    check.add_argument(
        "--checkpoint",
        metavar="BASE",
        help="of a LoRA, the checkpoint that it is for (default: the published sizes)",
    )
    check.set_defaults(command=_check_checkpoint)


def _add_train(commands: "Commands") -> None:
    train = commands.add_parser("train", help="train a model that ships with reverie")
    families = train.add_subparsers(title="models", metavar="MODEL", required=True)
    pocket = families.add_parser(
        "pocket",
        help="the embedded world model",
        description="Train the embedded model: the codec, then the world model on top of it. The "
        "same seed gives the same weights on one machine. Stop it at any time: the next run goes "
        "on from the newest checkpoint. What is trained so far can be served.",
    )
    pocket.add_argument(
        "--out",
        type=Path,
        default=Path("runs/pocket"),
        metavar="FOLDER",
        help="checkpoints and weights (default: %(default)s)",
    )
    pocket.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    pocket.add_argument(
        "--stage",
        choices=("all", "codec", "world", "narrator"),
        default="all",
        help="default: %(default)s",
    )
    pocket.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="default: %(default)s"
    )
    pocket.add_argument(
        "--preset",
        choices=("pocket", "tiny"),
        default="pocket",
        help="sizes and schedule; tiny is for trying out (default: %(default)s)",
    )
    pocket.add_argument("--minutes", type=float, help="stop with a checkpoint after so long")
    pocket.add_argument("--threads", type=int, default=2, help="CPU threads (default: %(default)s)")
    pocket.add_argument("--fresh", action="store_true", help="begin anew, whatever lies in --out")
    pocket.set_defaults(command=_train_pocket)


def _add_eval(commands: "Commands") -> None:
    evaluation = commands.add_parser("eval", help="measure how good a model is that ships")
    families = evaluation.add_subparsers(title="models", metavar="MODEL", required=True)
    pocket = families.add_parser(
        "pocket",
        help="the embedded world model",
        description="Play the embedded model through the serving loop, on maps that no training "
        "saw, and hold what it shows against the simulator's truth. Status 1 when a bar of the "
        "steps that are served is missed by more than its interval, and is not known to be. A "
        "full run takes about ten minutes on two cores for each number of steps.",
    )
    pocket.add_argument("--quick", action="store_true", help="two minutes, with wider intervals")
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
    from reverie.models.pocket.sampler import MAX_STEPS

    try:
        steps = tuple(int(part) for part in text.split(","))
    except ValueError:
        steps = ()
    if not steps or len(set(steps)) < len(steps) or not all(1 <= n <= MAX_STEPS for n in steps):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of steps, 1 to {MAX_STEPS}")
    return steps


def _add_bench(commands: "Commands") -> None:
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


def _serve(chosen: argparse.Namespace) -> int:
    from reverie.config import Deployment, DeploymentError

    logging.basicConfig(
        level=logging.DEBUG if chosen.verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    if not chosen.verbose:
        logging.getLogger("uvicorn").setLevel(logging.WARNING)  # its news is told here already
        logging.getLogger("aioice").setLevel(logging.WARNING)  # it tells of every pair of addresses
    try:
        deployment = Deployment.read(chosen.config, os.environ, settings_of(chosen))
    except DeploymentError as error:
        return _complain(str(error), MISUSED)
    return asyncio.run(_serve_until_stopped(deployment))


async def _serve_until_stopped(deployment: "Deployment") -> int:
    """Answer at once, load meanwhile, and leave no worker behind however it ends."""
    from reverie.host import Engine
    from reverie.rtc.app import create_app
    from reverie.rtc.edge import Edge
    from reverie.rtc.errors import CannotListenError
    from reverie.rtc.server import Server
    from reverie.sessions import SessionError

    engine = Engine(deployment)
    try:
        await engine.start()
    except SessionError as error:  # a folder or a voice that the deployment names is not there
        return _complain(str(error), FAILED)
    status = 0
    try:
        edge = Edge(engine.store, engine.pool, deployment.server)
        server = Server(create_app(edge), deployment.server, edge.drain)
        async with asyncio.TaskGroup() as tasks:
            loading = tasks.create_task(_load(engine, server), name="load")
            await server.serve()
            loading.cancel()
        status = 0 if loading.cancelled() else loading.result()
    except* CannotListenError as group:
        status = _complain(str(group.exceptions[0]), FAILED)
    finally:
        await engine.stop()
    return status


async def _load(engine: "Engine", server: "Server") -> int:
    """Load the models and say how far it is; without them the server ends."""
    from reverie.gpu_pool import ModelUnavailableError

    await server.ready.wait()
    print(f"reverie is at {server.url} and loads its models", flush=True)
    try:
        await engine.pool.start()
    except ModelUnavailableError as error:
        server.should_exit = True
        return _complain(str(error), FAILED)
    print(f"reverie is ready: {', '.join(engine.specs)} at {server.url}", flush=True)
    return 0


def settings_of(chosen: argparse.Namespace) -> "list[Setting]":
    """Return the fields of the deployment that the command line sets."""
    from reverie.config import Setting

    settings = []
    if chosen.host is not None:
        settings.append(Setting(("server", "host"), chosen.host, "--host"))
    if chosen.port is not None:
        settings.append(Setting(("server", "port"), chosen.port, "--port"))
    if chosen.inline:
        settings.append(Setting(("pool", "mode"), "inline", "--inline"))
    if chosen.model:
        settings.append(Setting(("pool", "models"), chosen.model, "--model"))
    return settings


def _model(text: str) -> dict[str, object]:
    """Read `--model`: a name, a location (named after its module), or `name=location`."""
    name, equals, family = text.partition("=")
    if equals:
        return {"name": name, "family": family}
    if ":" in text or text.endswith(".py"):  # without a name in it, finding it will say so
        place = (text.rpartition(":")[0] or text).removesuffix(".py")
        return {"name": re.split(r"[./\\]", place)[-1], "family": text}
    return {"name": text}


class _CheckpointOfModel(argparse.Action):
    """Gives the newest `--model` its weights; without one, the model that is served by default."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        models = namespace.model = namespace.model or [_model("pocket")]
        models[-1]["checkpoint"] = str(values)


class _DecoderOfModel(argparse.Action):
    """Gives the newest `--model` another decoder; without one, the model served by default."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        kind, _, path = str(values).partition("=")
        models = namespace.model = namespace.model or [_model("pocket")]
        models[-1].update(decoder=kind, decoder_path=path or None)


class _AdapterOfModel(argparse.Action):
    """Gives the newest `--model` a LoRA; without one, the model that is served by default."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        name, equals, path = str(values).partition("=")
        merged = option_string == "--lora-merged"
        if merged:
            path = str(values)
            name = re.sub(r"[^a-z0-9_]+", "_", Path(path).stem.lower())
        elif not (equals and name and path):
            parser.error(f"{option_string} takes NAME=PATH, not {values!r}")
        models = namespace.model = namespace.model or [_model("pocket")]
        models[-1].setdefault("adapters", []).append({"name": name, "path": path, "merged": merged})


def _models(chosen: argparse.Namespace) -> int:
    from reverie.models.catalogue import as_text, catalogue

    print(as_text(catalogue(load=chosen.load)))
    return 0


def _check_checkpoint(chosen: argparse.Namespace) -> int:
    from reverie.models.catalogue import checked
    from reverie.models.errors import ModelError

    try:
        report = checked(chosen.model, chosen.path, chosen.checkpoint)
    except ModelError as error:
        return _complain(str(error), FAILED)
    print("\n".join(report.lines()))
    return 0 if report.fits else FAILED


def _train_pocket(chosen: argparse.Namespace) -> int:
    from reverie.engine.rollouts import Rollouts
    from reverie.models.pocket.training.export import export
    from reverie.models.pocket.training.loop import checkpoint_path
    from reverie.models.pocket.training.options import TrainOptions
    from reverie.models.pocket.training.run import train

    options = TrainOptions(
        out=chosen.out,
        seed=chosen.seed,
        stage=chosen.stage,
        device=chosen.device,
        preset=chosen.preset,
        max_minutes=chosen.minutes,
        resume=not chosen.fresh,
        threads=chosen.threads,
    )
    try:
        train(options, Rollouts)
    except FileNotFoundError as error:
        return _complain(str(error), FAILED)
    if checkpoint_path(options.out, "world").exists():
        weights = options.out / "pocket.safetensors"
        version = export(options.out, weights, options.preset, options.seed)
        print(f"weights {version} are in {weights}")
        if options.preset == "pocket":  # others have other sizes than the model that is served
            print(f"play them: REVERIE_POOL__MODELS__0__CHECKPOINT={weights} reverie serve")
    return 0


def _eval_pocket(chosen: argparse.Namespace) -> int:
    from reverie.engine.errors import EngineError
    from reverie.evaluation import (
        EvaluationOptions,
        as_table,
        draw_strip,
        run_evaluation,
        write_json,
    )
    from reverie.models.errors import ModelError

    checkpoint = None if chosen.checkpoint is None else str(chosen.checkpoint)
    options = EvaluationOptions(chosen.quick, chosen.steps, checkpoint, chosen.workers)
    try:
        if chosen.strip is not None:
            draw_strip(chosen.strip, options)
            return 0
        report = run_evaluation(options, _tell_progress)
    except (ModelError, EngineError, OSError) as error:
        return _complain(str(error), FAILED)
    print(as_table(report))
    if chosen.json is not None:
        write_json(report, chosen.json)
    for row in report.missed:
        _complain(f"{row.measure.title}: the bar is missed by more than the interval", FAILED)
    return FAILED if report.missed else 0


def _tell_progress(done: int, jobs: int) -> None:
    print(f"{done} of {jobs} parts done", file=sys.stderr, flush=True)


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
        return _complain(f"--media drives a browser: {error}; pip install playwright", FAILED)
    print(as_media_table(report))
    if chosen.json is not None:
        write_media_json(report, chosen.json)
    return 0


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
        return _complain(str(error), FAILED)
    print(as_table(report))
    if chosen.json is not None:
        write_json(report, chosen.json)
    return 0


def _complain(message: str, status: int) -> int:
    print(f"reverie: {message}", file=sys.stderr)
    return status
