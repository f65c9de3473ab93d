"""Stopping a long command early: SIGTERM acts as Ctrl-C does, and the results so far are kept."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPPED = 130
"""Exit status of a command that was stopped: 128 and SIGINT."""


@contextmanager
def stopped_as_by_ctrl_c() -> Iterator[None]:
    """Have SIGTERM act as Ctrl-C within a block.

    A shell that runs a command in the background has it ignore Ctrl-C; SIGTERM stops that one too.
    """

    def stop(_: int, __: FrameType | None) -> None:
        if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
