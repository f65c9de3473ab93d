"""A session's key/value cache: whole pages in the block pool, the newest tokens in the state.

A page is a cache block of `PAGE_TOKENS` tokens, written once and shared by every state that refers
to it. The tokens that do not fill a page yet are a small tensor of the state, which is copied with
each token, so that no state is ever modified.

Shapes: t tokens of W numbers each, as `CacheLayout` has them: [t, W].
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import DynamicCache

from reverie.models.causal_lm.cache_layout import CacheLayout
from reverie.models.causal_lm.config import PAGE_TOKENS
from reverie.models.causal_lm.working_cache import WorkingCache, empty_cache
from reverie.models.contract.blocks import BlockId, BlockPool


@dataclass(frozen=True, slots=True)
class CachedTokens:
    """The tokens of a conversation that are in the cache.

    Attributes:
        tokens: their ids, oldest first.
        blocks: a page for each whole `PAGE_TOKENS` of them.
        tail_tW: keys and values of the rest.
        working: the same as one tensor, valid while its version is `version`.
    """

    tokens: tuple[int, ...] = ()
    blocks: tuple[BlockId, ...] = ()
    tail_tW: Tensor | None = None
    working: WorkingCache | None = None
    version: int = 0

    @property
    def in_tail(self) -> int:
        """Tokens that do not fill a page yet."""
        return len(self.tokens) - PAGE_TOKENS * len(self.blocks)

    def pages_filled_by(self, count: int) -> int:
        """Return how many pages `count` more tokens complete."""
        return (self.in_tail + count) // PAGE_TOKENS

    def common_with(self, tokens: Sequence[int]) -> "CachedTokens":
        """Return the part that can be kept when the conversation becomes `tokens`.

        The working cache begins with that part, so it stays valid.
        """
        same = 0
        for mine, theirs in zip(self.tokens, tokens, strict=False):
            if mine != theirs:
                break
            same += 1
        pages = min(same // PAGE_TOKENS, len(self.blocks))
        in_tail = same - PAGE_TOKENS * pages if pages == len(self.blocks) else 0
        tail = self.tail_tW[:in_tail] if self.tail_tW is not None else None
        kept = PAGE_TOKENS * pages + in_tail
        return CachedTokens(
            self.tokens[:kept],
            self.blocks[:pages],
            tail if in_tail else None,
            self.working,
            self.version,
        )

    def opened(self, pool: BlockPool, layout: CacheLayout) -> WorkingCache:
        """Return the cache as one tensor, for a forward pass to add to."""
        working = self.working
        if working is None or working.version != self.version:  # another state continues with it
            working = WorkingCache(self._laid_out(pool, layout), len(self.tokens))
        working.lend(len(self.tokens))
        return working

    def _laid_out(self, pool: BlockPool, layout: CacheLayout) -> DynamicCache:
        parts = []
        if self.blocks:
            parts.append(pool.gather(self.blocks).flatten(0, 1))  # of [P, PAGE_TOKENS, W]
        if self.tail_tW is not None:
            parts.append(self.tail_tW)
        return layout.cache(torch.cat(parts)) if parts else empty_cache()

    def grown(
        self,
        tokens: Sequence[int],
        working: WorkingCache,
        layout: CacheLayout,
        reserved: tuple[BlockId, ...],
        pool: BlockPool,
    ) -> "CachedTokens":
        """Return this and `tokens`, which a forward pass has added to `working`.

        Args:
            reserved: as many blocks as `pages_filled_by` returned.
        """
        new = layout.newest(working.cache, len(tokens))
        tail = new if self.tail_tW is None else torch.cat([self.tail_tW, new])
        for number, block in enumerate(reserved):
            pool.view(block).copy_(tail[number * PAGE_TOKENS : (number + 1) * PAGE_TOKENS])
        rest = tail[len(reserved) * PAGE_TOKENS :]
        return CachedTokens(
            (*self.tokens, *tokens),
            (*self.blocks, *reserved),
            rest.clone() if len(rest) else None,
            working,
            working.grew(len(tokens)),
        )
