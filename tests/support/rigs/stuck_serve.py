"""`reverie serve` in which one thing never comes to its end; named by the first argument."""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from reverie.cli import main
from reverie.media.video.h264 import H264Encoder

HANG_S = 3600.0


def hang(*_: object) -> None:
    """Stand still, as a driver or a codec can, and tell the test so."""
    os.write(1, b"stuck\n")
    time.sleep(HANG_S)


def hold(*_: object) -> None:
    """Stand still and let no other thread of the process run."""
    sum(range(10**15))


def stick(what: str) -> None:
    """Arrange for it."""
    match what:
        case "encoder":
            H264Encoder.encode = hang  # type: ignore[method-assign, assignment]
        case "library":  # its threads are joined as the interpreter leaves
            ThreadPoolExecutor(1).submit(hang)
        case "interpreter":
            H264Encoder.close = hold  # type: ignore[method-assign, assignment]
        case _:
            raise ValueError(what)


if __name__ == "__main__":
    stick(sys.argv.pop(1))
    sys.exit(main())
