"""The encoder cache and the key that finds an entry in it.

Every field that can change the output is in the key: two sessions share an entry only when all
fields are equal, and a change of weights or adapters never finds a stale entry.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Names everything that an encoder's (or any cached) output depends on."""

    model: str
    component: str
    weights_version: str
    inputs: tuple[str, ...]
    adapters: tuple[str, ...] = ()
    precision: str = "float32"


class EncoderCache:
    """The most recently used encoder outputs, shared by all sessions of an instance.

    Thread-safe: prompts are encoded on another thread than the step thread. Two threads that miss
    the same entry both compute it, and the values are equal.
    """

    def __init__(self, capacity: int = 256) -> None:
        """Keep at most `capacity` entries; the least recently used goes first."""
        self._capacity = capacity
        self._entries: OrderedDict[CacheKey, Tensor] = OrderedDict()
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)

    def __contains__(self, key: CacheKey) -> bool:
        with self._lock:
            return key in self._entries

    def get(self, key: CacheKey) -> Tensor | None:
        """Return the entry, or None; the tensor is shared and must not be edited."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                self.misses += 1
                return None
            self.hits += 1
            self._entries.move_to_end(key)
            return entry

    def put(self, key: CacheKey, value: Tensor) -> None:
        """Keep `value`; drop the least recently used entry when full."""
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
