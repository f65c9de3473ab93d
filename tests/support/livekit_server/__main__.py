"""Serve until standard input ends, which it does when whoever started this has ended.

Where standard input is no pipe and no terminal, as behind `nohup ... &`, until SIGTERM or SIGINT.
"""

import argparse
import asyncio
import logging
import os
import signal
import stat
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
    has_input = _has_input()  # before anything else may take the number of a closed one
    server = Server(Tokens(given.key, given.secret))
    asyncio.run(_serve(server, given.host, given.port, has_input))


async def _serve(server: Server, host: str, port: int, has_input: bool) -> None:
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with server.serving(host, port) as url:
        sys.stdout.write(url + "\n")
        sys.stdout.flush()
        if has_input:
            loop.add_reader(0, _read, ended)
        await ended.wait()


def _has_input() -> bool:
    """Tell whether standard input says by its end that nobody needs the server any more."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:  # it is closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(0)


def _read(ended: asyncio.Event) -> None:
    try:
        is_over = not os.read(0, 4096)
    except OSError:  # the terminal has gone
        is_over = True
    if is_over:
        ended.set()


if __name__ == "__main__":
    main()
