"""What a block of latent frames looks back on, as numbers of frames.

The rule of Self-Forcing and LongLive in terms of whole frames: the window ends with the block in
the making, the sink stays for ever, and of the rest the oldest leave first. A cache block holds one
latent frame, so the same rule says which cache blocks a session keeps.
"""

from typing import TypeVar

from reverie.models.wan.config import CausalConfig

Item = TypeVar("Item")


def seen_past(past: tuple[Item, ...], new: int, config: CausalConfig) -> tuple[Item, ...]:
    """Return what of the past a block of `new` frames attends to, oldest first.

    Args:
        past: one item for each kept frame, the sink first.
        new: frames in the making.
    """
    room = config.local - new
    if len(past) <= room:
        return past
    sink = min(config.sink, room)
    return past[:sink] + past[len(past) - (room - sink) :]


def kept(past: tuple[Item, ...], made: tuple[Item, ...], config: CausalConfig) -> tuple[Item, ...]:
    """Return the window after a block was added: what it saw, and itself."""
    return seen_past(past, len(made), config) + made
