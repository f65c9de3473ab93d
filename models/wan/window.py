"""What a block of latent frames looks back on, as numbers of frames.

The rule of Self-Forcing and LongLive in terms of whole frames: the window ends with the block in
the making, the sink stays for ever, and of the rest the oldest leave first. A cache block holds one
latent frame, so the same rule says which cache blocks a session keeps.
"""

from typing import TypeVar

from reverie.models.wan.config import CausalConfig
from reverie.models.wan.state import LatentFrame

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


def block_at(number: int, config: CausalConfig) -> int:
    """Return how many frames the block that begins with frame `number` has when it is whole."""
    return 1 if config.first_alone and number == 0 else config.block


def due_block(
    fresh: tuple[LatentFrame, ...], more_to_come: bool, config: CausalConfig
) -> tuple[LatentFrame, ...]:
    """Return the oldest block that waits to be written; nothing when it is not whole yet.

    Args:
        fresh: final frames that are not written, oldest first.
        more_to_come: whether the last block of them may still grow.
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

    The sink, once the video has grown out of the window; before, it is computed anew.

    Args:
        frame: frames that are written, as numbered.
        window: the newest of them.
    """
    return config.sink if frame > len(window) and config.global_sink else 0
