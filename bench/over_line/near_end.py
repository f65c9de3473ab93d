"""The processes at the near end of a line: a server with toy models, and the bare loops."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from reverie.bench.line import EmulatedLine
from reverie.bench.over_line.bare_loops import READY

SERVER_PORT = 8000
BARE_PORT = 8001
START_S = 180.0
STOP_S = 20.0
_LOOK_S = 0.2
_MODULE = "reverie.bench.over_line"


class NearEndError(RuntimeError):
    """A process at the near end did not start, or has ended."""


@dataclass(frozen=True, slots=True)
class NearEnd:
    """Where the far end finds the server and the bare loops."""

    url: str
    bare_url: str


@asynccontextmanager
async def near_end(line: EmulatedLine, toys: Iterable[str]) -> AsyncIterator[NearEnd]:
    """Run the server, with these models, and the bare loops at the near end of a line.

    Raises:
        NearEndError: one of them did not start.
    """
    models = [word for toy in toys for word in ("--model", f"{toy}={_MODULE}.toy_models:{toy}")]
    address = line.near_address
    serve = ["-m", "reverie", "serve", "--host", "0.0.0.0", "--port", str(SERVER_PORT), *models]
    loops = ["-m", f"{_MODULE}.bare_loops", "0.0.0.0", str(BARE_PORT)]
    async with _running(line, serve) as server, _running(line, loops, stdout=PIPE) as bare:
        async with asyncio.timeout(START_S):
            if bare.stdout is None or (await bare.stdout.readline()).decode().strip() != READY:
                raise NearEndError("the bare loops did not start")
            while not await asyncio.to_thread(_is_ready, line):
                if server.returncode is not None:
                    raise NearEndError("the server did not start: try `reverie serve`")
                await asyncio.sleep(_LOOK_S)
        yield NearEnd(f"http://{address}:{SERVER_PORT}", f"ws://{address}:{BARE_PORT}")


@asynccontextmanager
async def _running(
    line: EmulatedLine, words: list[str], stdout: int = DEVNULL
) -> AsyncIterator[Process]:
    command = line.near.inside([sys.executable, *words])
    process = await asyncio.create_subprocess_exec(*command, stdout=stdout, stderr=DEVNULL)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(STOP_S):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


def _is_ready(line: EmulatedLine) -> bool:
    """Ask the server from its own end of the line."""
    with line.near.entered():
        try:
            url = f"http://127.0.0.1:{SERVER_PORT}/readyz"
            return httpx.get(url, timeout=2, trust_env=False).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False
