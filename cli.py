"""The command `reverie`: serve, models, train, eval and bench.

Each command (`commands/`) imports what it needs when it runs, so that `--help` answers at once.
"""

import argparse
from collections.abc import Callable, Sequence

from reverie import __version__
from reverie.commands import bench, evaluate, models, serve, train

_ABOUT = """\
A realtime session server for interactive streaming generation: open a session, and what you say,
type or press changes what is generated next."""

_EXAMPLES = """\
examples:
  reverie serve                            serve the embedded model on http://127.0.0.1:8000
  reverie serve --port 9000 --config deployment.yaml
  reverie serve --model examples/plasma.py:family
  reverie models                           list the models that can be served
  reverie bench --quick --json bench.json  measure this machine in about two minutes
  reverie train pocket --minutes 60        train the embedded model for an hour
  reverie eval pocket --quick              measure the embedded model in about two minutes

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
    """Return the parser of the command line; `command` of its result runs the command."""
    parser = argparse.ArgumentParser(
        "reverie",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"reverie {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (serve, models, train, evaluate, bench):
        command.add(commands)
    return parser
