"""Serve until standard input ends, which it does when whoever started this has ended."""

import argparse
import asyncio
import logging
import os
import sys

from livekit_server.app import Server
from livekit_server.tokens import Tokens


def main() -> None:
    """Say where it listens on the first line of standard output, and serve."""
    parser = argparse.ArgumentParser(prog="livekit_server")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", required=True)
    parser.add_argument("--secret", required=True)
    parser.add_argument("--verbose", action="store_true", help="log every message")
    given = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("livekit_server").setLevel("DEBUG" if given.verbose else "INFO")
    asyncio.run(_serve(Server(Tokens(given.key, given.secret)), given.host, given.port))


async def _serve(server: Server, host: str, port: int) -> None:
    async with server.serving(host, port) as url:
        sys.stdout.write(url + "\n")
        sys.stdout.flush()
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(sys.stdin, _read, ended)
        await ended.wait()


def _read(ended: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        ended.set()


if __name__ == "__main__":
    main()
