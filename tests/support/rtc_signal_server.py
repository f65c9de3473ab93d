"""A server process for signal tests; its arguments are the time of a drain and its limit."""

import asyncio
import sys

from starlette.applications import Starlette

from reverie.rtc.options import ServerOptions
from reverie.rtc.server import Server


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def main(drain_s: float, limit_s: float) -> None:
    async def drain() -> None:
        say("draining")
        await asyncio.sleep(drain_s)
        say("drained")

    options = ServerOptions(port=0, drain_timeout_s=limit_s, close_timeout_s=0.2)
    server = Server(Starlette(), options, drain)

    async def tell() -> None:
        await server.ready.wait()
        say(server.url)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(tell())
        tasks.create_task(server.serve())
    say("left")


asyncio.run(main(float(sys.argv[1]), float(sys.argv[2])))
