"""What the commands share: the type of their parser, and how they report a failure."""

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:  # not generic at run time
    Commands = argparse._SubParsersAction
"""The subparsers that each command adds its own parser to."""

FAILED = 1
MISUSED = 2


def complain(message: str, status: int) -> int:
    """Print an error message to stderr, and return the exit status."""
    print(f"reverie: {message}", file=sys.stderr)
    return status
