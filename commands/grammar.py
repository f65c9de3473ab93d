"""What the commands have in common: the grammar that they add to, and how they end."""

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:  # no generic while it runs
    Commands = argparse._SubParsersAction
"""Where a command adds its own parser."""

FAILED = 1
MISUSED = 2


def complain(message: str, status: int) -> int:
    """Say what went wrong, and return the exit status."""
    print(f"reverie: {message}", file=sys.stderr)
    return status
