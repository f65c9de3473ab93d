"""`reverie serve`: models to browsers and programs."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.commands.grammar import FAILED, MISUSED, Commands, complain
from reverie.commands.models_to_serve import (
    AdapterOfModel,
    CheckpointOfModel,
    DecoderOfModel,
    GameOfModel,
    MergedAdapterOfModel,
    PartsOfModel,
    model_named,
    settings_of,
)

if TYPE_CHECKING:
    from reverie.config import Deployment
    from reverie.host import Engine
    from reverie.rtc.server import Server


def add(commands: Commands) -> None:
    """Add the command that serves models."""
    serve = commands.add_parser(
        "serve",
        help="serve models to browsers and programs",
        description="Serve models over HTTP, WebSocket and WebRTC, and a web client. After Ctrl-C "
        "running sessions finish their chunk before the server ends; a second Ctrl-C, at least a "
        "second later, ends it at once.",
    )
    serve.add_argument("--config", type=Path, metavar="FILE", help="a deployment in YAML")
    serve.add_argument("--host", help="address to listen on (default: 127.0.0.1, this machine)")
    serve.add_argument("--port", type=int, help="port to listen on (default: 8000; 0: a free one)")
    serve.add_argument(
        "--model",
        action="append",
        type=model_named,
        metavar="MODEL",
        help="serve this model: an installed one, package.module:Name or path/to/file.py:Name; "
        "NAME=MODEL gives it another name; may be repeated (default: pocket)",
    )
    serve.add_argument(
        "--checkpoint",
        action=CheckpointOfModel,
        metavar="PATH",
        help="weights for the --model before it (default: those that ship with the model)",
    )
    serve.add_argument(
        "--parts",
        action=PartsOfModel,
        metavar="DIR",
        help="the folder of the other files that the --checkpoint before it needs: other networks, "
        "a tokenizer, start pictures (default: the checkpoint's own)",
    )
    serve.add_argument(
        "--lora",
        action=AdapterOfModel,
        metavar="NAME=PATH",
        help="a LoRA that sessions of the --model before it can choose by the parameter "
        "lora_NAME; may be repeated",
    )
    serve.add_argument(
        "--lora-merged",
        action=MergedAdapterOfModel,
        metavar="PATH",
        help="a LoRA to merge into the weights of the --model before it; may be repeated",
    )
    serve.add_argument(
        "--decoder",
        action=DecoderOfModel,
        metavar="KIND[=PATH]",
        help="decode the latents of the --model before it with another decoder, such as taehv, "
        "whose weights are at PATH (default: next to the checkpoint)",
    )
    serve.add_argument(
        "--game",
        action=GameOfModel,
        metavar="GAME",
        help="the game that the --model before it was trained on, for a family of several games "
        "(default: the name of its checkpoint)",
    )
    serve.add_argument(
        "--inline",
        action="store_true",
        help="for debugging: run models on a thread of this process instead of in workers",
    )
    serve.add_argument("--verbose", action="store_true", help="log debug messages as well")
    serve.set_defaults(command=_serve)


def _serve(chosen: argparse.Namespace) -> int:
    import asyncio
    import logging

    from reverie.config import Deployment, DeploymentError

    logging.basicConfig(
        level=logging.DEBUG if chosen.verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    if not chosen.verbose:
        logging.getLogger("uvicorn").setLevel(logging.WARNING)  # this command prints the address
        logging.getLogger("aioice").setLevel(logging.WARNING)  # it logs every pair of addresses
    try:
        deployment = Deployment.of_process(chosen.config, settings_of(chosen))
    except DeploymentError as error:
        return complain(str(error), MISUSED)
    return asyncio.run(_serve_until_stopped(deployment))


async def _serve_until_stopped(deployment: "Deployment") -> int:
    """Serve while the models load, and end all workers afterwards, after any failure too."""
    import asyncio

    from reverie.host import Engine
    from reverie.rtc.app import create_app
    from reverie.rtc.app_context import AppContext
    from reverie.rtc.server import Server, leave_within
    from reverie.rtc.wire.errors import CannotListenError
    from reverie.sessions import SessionError

    engine = Engine(deployment)
    try:
        await engine.start()
    except SessionError as error:  # a folder or a voice that the deployment names is missing
        return complain(str(error), FAILED)
    status = 0
    try:
        context = AppContext(engine.store, engine.pool, deployment.server)
        app, options = create_app(context), deployment.server
        server = Server(app, options, context.drain, on_leaving=leave_within)
        async with asyncio.TaskGroup() as tasks:
            loading = tasks.create_task(_load(engine, server), name="load")
            await server.serve()
            loading.cancel()
        status = 0 if loading.cancelled() else loading.result()
    except* CannotListenError as group:
        status = complain(str(group.exceptions[0]), FAILED)
    finally:
        await engine.stop()
    return status


async def _load(engine: "Engine", server: "Server") -> int:
    """Load the models and print the progress; a failure ends the server."""
    from reverie.gpu_pool import ModelUnavailableError

    await server.ready.wait()
    print(f"reverie is at {server.url} and is loading its models", flush=True)
    try:
        await engine.pool.start()
    except ModelUnavailableError as error:
        server.should_exit = True
        return complain(str(error), FAILED)
    print(f"reverie is ready: {', '.join(engine.specs)} at {server.url}", flush=True)
    return 0
