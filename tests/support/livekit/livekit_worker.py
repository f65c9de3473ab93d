"""A worker of the real `AgentServer`, as a process of its own; also how tests start it.

    python livekit_worker.py MODULE FUNCTION EXECUTOR NAME

runs the function of an importable module as the job of agents called NAME, until standard input
ends. The server and its key are those of the environment (`LIVEKIT_URL`, ...).
"""

import asyncio
import importlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from livekit.agents import AgentServer, JobExecutorType
from livekit_rig import LiveKit, stop_process

Executor = Literal["thread", "process"]


@asynccontextmanager
async def agent_worker(
    livekit: LiveKit,
    folder: Path,
    module: Path,
    *,
    function: str,
    executor: Executor,
    name: str,
    **environment: str,
) -> AsyncIterator[Path]:
    """Run a worker for as long as the block lasts; yields its log. It has registered by then.

    The loop goes on meanwhile, for what the job talks to may run on it.

    Args:
        folder: for the log.
        module: the file that holds the job's function.
    """
    here = Path(__file__)
    log = folder / f"worker-{executor}.log"
    known = {
        "LIVEKIT_URL": livekit.url,
        "LIVEKIT_API_KEY": livekit.api_key,
        "LIVEKIT_API_SECRET": livekit.api_secret,
        "PYTHONPATH": os.pathsep.join([str(module.parent), *sys.path]),
    }
    command = [sys.executable, str(here), module.stem, function, executor, name]
    process = await asyncio.to_thread(_started, command, log, {**known, **environment})
    try:
        assert process.stdout is not None
        line = await asyncio.to_thread(process.stdout.readline)
        assert line.strip() == b"registered", log.read_text()
        yield log
    finally:
        await asyncio.to_thread(stop_process, process)


def _started(
    command: Sequence[str], log: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
        )


async def main(module: str, function: str, executor: str, name: str) -> None:
    """Serve jobs until standard input ends."""
    server = AgentServer(
        job_executor_type=JobExecutorType[executor.upper()],
        num_idle_processes=0,
        initialize_process_timeout=60.0,
        load_threshold=float("inf"),
        host="127.0.0.1",
        port=0,
    )
    server.rtc_session(getattr(importlib.import_module(module), function), agent_name=name)
    server.on("worker_registered", lambda *_: print("registered", flush=True))  # noqa: T201
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, ended.set)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.run(), name="worker")
        await ended.wait()
        await server.aclose()
        serving.cancel()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
