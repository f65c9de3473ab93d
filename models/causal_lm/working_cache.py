"""The cache of one conversation as one tensor a layer, to which each token is added in place.

A state refers to pages, which are shared, counted and never modified. To attend to them they are
copied into one tensor, which the next state of the conversation reuses. Another state (of a fork,
or after a rewind) finds another version, and makes a copy of its own.
"""

from typing import Any

from torch import Tensor
from transformers import Cache, DynamicCache
from transformers.cache_utils import DynamicLayer

from reverie.models.causal_lm.config import GROWTH, SPARE_TOKENS


class GrowingLayer(DynamicLayer):  # type: ignore[no-untyped-call]  # of its base
    """Keys and values of one layer, with spare room after them."""

    def __init__(self, *args: Any, **options: Any) -> None:
        """Hold nothing."""
        super().__init__(*args, **options)  # type: ignore[no-untyped-call]
        self._key_room: Tensor | None = None
        self._value_room: Tensor | None = None

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **options: Any
    ) -> tuple[Tensor, Tensor]:
        """Add tokens at the end; return all."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        before = self.get_seq_length()
        self._key_room = _with_room(self._key_room, before, key_states)
        self._value_room = _with_room(self._value_room, before, value_states)
        end = before + key_states.shape[-2]
        self.keys = self._key_room[:, :, :end]
        self.values = self._value_room[:, :, :end]
        return self.keys, self.values

    def cut(self, length: int) -> None:
        """Drop all but the first tokens."""
        if self._key_room is not None and self._value_room is not None:
            self.keys = self._key_room[:, :, :length]
            self.values = self._value_room[:, :, :length]


def _with_room(room: Tensor | None, before: int, new: Tensor) -> Tensor:
    """Write tokens after the first `before`; return the tensor, a larger one if it was full."""
    end = before + new.shape[-2]
    if room is None or room.shape[-2] < end:
        shape = (*new.shape[:2], end + end // GROWTH + SPARE_TOKENS, new.shape[-1])
        grown = new.new_empty(shape)
        if room is not None:
            grown[:, :, :before] = room[:, :, :before]
        room = grown
    room[:, :, before:end] = new
    return room


def empty_cache() -> DynamicCache:
    """Return a cache whose layers grow in place."""
    cache = DynamicCache()
    Cache.__init__(cache, layer_class_to_replicate=GrowingLayer)
    return cache


class WorkingCache:
    """A conversation in one tensor a layer, valid for the state that last added to it.

    Attributes:
        cache: as the library reads it.
        length: tokens in it.
        version: of its content; a state with another version must not use it.
    """

    def __init__(self, cache: DynamicCache, length: int) -> None:
        """Take a cache that holds `length` tokens."""
        self.cache = cache
        self.length = length
        self.version = 0

    def lend(self, length: int) -> None:
        """Drop all but the first tokens, and become invalid for every state until `grew` is called.

        A forward pass that fails may have added to some layers.
        """
        self.version += 1
        if length < self.length:
            for layer in self.cache.layers:
                if isinstance(layer, GrowingLayer):
                    layer.cut(length)
            self.length = length

    def grew(self, count: int) -> int:
        """Record that a forward pass has added tokens; return the version of the new content."""
        self.length += count
        return self.version
