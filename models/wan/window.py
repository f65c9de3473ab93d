"""Which frames a block of latent frames attends to.

The rule of Self-Forcing and LongLive in terms of whole frames: the window ends with the block in
progress, the sink stays for ever, and of the rest the oldest leave first. A cache block holds one
latent frame, so the same rule says which cache blocks a session keeps.
"""

from typing import TypeVar

from reverie.models.wan.config import CausalConfig
from reverie.models.wan.state import LatentFrame

Item = TypeVar("Item")


def seen_past(past: tuple[Item, ...], new: int, config: CausalConfig) -> tuple[Item, ...]:
    """Return the part of the past that a block of `new` frames attends to, oldest first.

    Args:
        past: one item for each kept frame, the sink first.
        new: frames of the block in progress.
    """
    room = config.local - new
    if len(past) <= room:
        return past
    sink = min(config.sink, room)
    return past[:sink] + past[len(past) - (room - sink) :]


def kept(past: tuple[Item, ...], made: tuple[Item, ...], config: CausalConfig) -> tuple[Item, ...]:
    """Return the window after a block was added: the frames it attended to, and itself."""
    return seen_past(past, len(made), config) + made


def block_at(number: int, config: CausalConfig) -> int:
    """Return how many frames the block that begins with frame `number` has when it is whole."""
    return 1 if config.first_alone and number == 0 else config.block


def due_block(
    fresh: tuple[LatentFrame, ...], more_to_come: bool, config: CausalConfig
) -> tuple[LatentFrame, ...]:
    """Return the oldest block that is not written; empty when it is not whole yet.

    Args:
        fresh: final frames that are not written, oldest first.
        more_to_come: whether the last of their blocks may still grow.
    """
    block = tuple(frame for frame in fresh if frame.block == fresh[0].block)
    whole = len(block) < len(fresh) or not more_to_come
    return block if block and (whole or len(block) >= block_at(block[0].block, config)) else ()


def renumbered(frames: tuple[LatentFrame, ...], config: CausalConfig) -> tuple[LatentFrame, ...]:
    """Return frames counted from 0, in blocks of which only the first may be short."""
    short = len(frames) % config.block
    return tuple(
        LatentFrame(index, max(0, index - (index - short) % config.block), frame.clean_Zhw)
        for index, frame in enumerate(frames)
    )


def unmoved(frame: int, window: tuple[LatentFrame, ...], config: CausalConfig) -> int:
    """Return how many of the window's first frames keep their cache blocks in a recache.

    These are the sink, once the video is longer than the window; before, it is recomputed.

    Args:
        frame: the number of the next frame.
        window: the newest written frames.
    """
    return config.sink if frame > len(window) and config.global_sink else 0
