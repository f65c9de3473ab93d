"""Randomness as a function of (seed, stream, index), and of nothing else.

No step may draw from a global generator, so that other sessions of a batch, a pause or a restart
cannot change what a session generates.
"""

from collections.abc import Callable
from hashlib import blake2b

import torch
from torch import Tensor

Draw = Callable[[int, str, int, tuple[int, ...]], Tensor]
"""Noise as a function of (seed, stream, index, shape), such as `normal`."""


def seeded(seed: int, stream: str, index: int) -> torch.Generator:
    """Return a CPU generator for draw `index` of `stream` in the session with `seed`."""
    digest = blake2b(f"{seed}/{stream}/{index}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)


def normal(seed: int, stream: str, index: int, shape: tuple[int, ...]) -> Tensor:
    """Draw float32 standard normal noise of `shape` on the CPU."""
    return torch.randn(shape, generator=seeded(seed, stream, index))
