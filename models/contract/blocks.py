"""Pools of fixed-size cache blocks with reference counts.

A block holds the keys and values of one frame (or latent chunk) in every layer. It is written once,
by the step that reserved it, and never edited, so that any number of states may refer to it: a fork
or a rewind shares blocks and copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NewType, Protocol

from reverie.models.contract.errors import OutOfBlocksError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

BlockId = NewType("BlockId", int)


class LoopState(Protocol):
    """What every loop state has: the cache blocks that it refers to."""

    @property
    def blocks(self) -> tuple[BlockId, ...]:
        """The blocks of the window, oldest first."""


class BlockPool:
    """A fixed number of equal blocks on one device.

    Not thread-safe: one step thread owns it.
    """

    def __init__(
        self,
        count: int,
        shape: tuple[int, ...],
        dtype: torch.dtype | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        """Allocate `count` blocks of `shape` at once, so that no step can run out of memory.

        A `dtype` of None is float32.
        """
        import torch  # only where there are tensors: a server has none

        self._data = torch.zeros((count, *shape), dtype=dtype, device=device)
        self._references = [0] * count
        self._free = [BlockId(index) for index in reversed(range(count))]

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return len(self._references)

    @property
    def free(self) -> int:
        """How many blocks have no reference."""
        return len(self._free)

    @property
    def block_bytes(self) -> int:
        """Size of one block."""
        return self._data[0].numel() * self._data.element_size() if self.count else 0

    @property
    def storage(self) -> Tensor:
        """All blocks, [count, *shape], for kernels that read them where they lie; not a copy."""
        return self._data

    def reserve(self, count: int) -> tuple[BlockId, ...]:
        """Take `count` free blocks, each with one reference.

        Raises:
            OutOfBlocksError: there are fewer; nothing was taken.
        """
        if count > len(self._free):
            raise OutOfBlocksError(
                f"{count} cache blocks were requested, {len(self._free)} are free"
            )
        taken = tuple(self._free.pop() for _ in range(count))
        for block in taken:
            self._references[block] = 1
        return taken

    def retain(self, blocks: Iterable[BlockId]) -> None:
        """Add a reference to each block."""
        for block in blocks:
            assert self._references[block] > 0, f"block {block} is free"
            self._references[block] += 1

    def release(self, blocks: Iterable[BlockId]) -> None:
        """Drop a reference to each block; the last one frees it."""
        for block in blocks:
            assert self._references[block] > 0, f"block {block} is free"
            self._references[block] -= 1
            if not self._references[block]:
                self._free.append(block)

    def view(self, block: BlockId) -> Tensor:
        """Return the block itself, to be written by the step that reserved it."""
        return self._data[block]

    def gather(self, blocks: tuple[BlockId, ...]) -> Tensor:
        """Return a copy of several blocks, stacked along a new first axis."""
        # Several times as fast as indexing by a list.
        import torch

        index = torch.tensor(blocks, dtype=torch.long, device=self._data.device)
        return self._data.index_select(0, index)
