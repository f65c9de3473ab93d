"""`reverie serve` over the stub model, as a process that a test can signal."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import stub_model
import yaml

START_S = 50.0


@dataclass(frozen=True, slots=True)
class ServeProcess:
    """A running server process."""

    process: Process
    url: str
    http: httpx.AsyncClient

    def socket_url(self, session: str) -> str:
        return f"{self.url.replace('http', 'ws', 1)}/v1/sessions/{session}/ws"

    async def open(self, **parameters: float) -> dict[str, Any]:
        answer = await self.http.post("/v1/sessions", json={"parameters": parameters})
        assert answer.status_code == 201, answer.text
        opened: dict[str, Any] = answer.json()
        return opened

    async def says(self, word: str) -> None:
        """Wait until it has printed a line with a word in it."""
        assert self.process.stdout is not None
        async with asyncio.timeout(START_S):
            while word not in (line := (await self.process.stdout.readline()).decode()):
                assert line, "the server has ended"

    async def exit_code(self, limit_s: float) -> int:
        async with asyncio.timeout(limit_s):
            return await self.process.wait()


def descendants(pid: int) -> set[int]:
    """Return the processes below one."""
    parents = {int(path.name): _stat(int(path.name))[1] for path in Path("/proc").glob("[0-9]*")}
    found = {pid}
    while more := {child for child, parent in parents.items() if int(parent) in found} - found:
        found |= more
    return found - {pid}


def _stat(pid: int) -> list[str]:
    """Return state and parent of a process; a zombie's when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return ["Z", "0"]


def alive(pids: set[int]) -> set[int]:
    """Return those that still run; what has ended and was not waited for does not."""

    return {pid for pid in pids if _stat(pid)[0] != "Z"}


@asynccontextmanager
async def serve_process(
    folder: Path,
    program: Sequence[str] = ("-m", "reverie"),
    *,
    modules: Path | None = None,
    recordings: Mapping[str, Any] | None = None,
    **server: Any,
) -> AsyncIterator[ServeProcess]:
    """Run `reverie serve` with a worker process, until it is ready.

    Args:
        program: what takes the place of `python -m reverie`.
        modules: a folder that server and worker import from first.
        recordings: of the deployment.
    """
    model = {"name": "stub", "family": stub_model.LOCATION, "sessions": 4}
    deployment: dict[str, Any] = {"pool": {"models": [model]}, "server": {"port": 0, **server}}
    deployment["recordings"] = dict(recordings or {})
    config = folder / "deployment.yaml"
    config.write_text(yaml.safe_dump(deployment))
    environment = {
        name: text for name, text in os.environ.items() if not name.startswith("REVERIE")
    }
    if modules is not None:
        places = (str(modules), environment.get("PYTHONPATH", ""))
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *program, "serve", "--config", str(config),
        stdout=PIPE, stderr=DEVNULL, env=environment,
    )  # fmt: skip
    try:
        async with asyncio.timeout(START_S):
            url = await _ready(process)
            async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
                yield ServeProcess(process, url, http)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _ready(process: Process) -> str:
    assert process.stdout is not None
    while "ready" not in (line := (await process.stdout.readline()).decode()):
        assert line, "the server has ended"
    return line.split()[-1]
