"""Where a session stands."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """Where a session stands.

    Attributes:
        chunk: the last chunk behind it; -1 before the first.
        pts_us: media time at which the next frame will begin.
    """

    chunk: int
    pts_us: int
