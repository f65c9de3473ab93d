"""The layout of a token in a model's key/value cache, found by running the model.

Configurations describe it in too many ways, and some layers keep other things: keys that are wider
than values, one head for all queries, or a recurrent state that is not a key/value cache. So the
model reads three tokens once, in two pieces, before it is served.

Shapes: A key/value heads of d channels, t tokens, W numbers of a token: its keys and values of
every layer, concatenated.
"""

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from reverie.models.causal_lm.working_cache import empty_cache
from reverie.models.contract.errors import CheckpointError

PROBE = (0, 1, 2)
TOLERANCE = 1e-2
"""Of logits of one pass and of two, relative to the greatest; large enough for half precision."""

_NOT_PLAIN = "not a decoder-only model with a plain key/value cache"
_FAULTS = (RuntimeError, ValueError, TypeError, IndexError, KeyError, AttributeError)


@dataclass(frozen=True, slots=True)
class CacheLayout:
    """How the numbers of a token are divided.

    Attributes:
        parts: heads and channels of keys, then of values, for each layer in turn.
    """

    parts: tuple[tuple[int, int], ...]

    @property
    def width(self) -> int:
        """Numbers of a token."""
        return sum(prod(part) for part in self.parts)

    @classmethod
    def of(cls, cache: DynamicCache) -> "CacheLayout":
        """Read it from a filled cache."""
        return cls(tuple((part.shape[1], part.shape[3]) for part in _tensors(cache)))

    def cache(self, rows_tW: Tensor) -> DynamicCache:
        """Return the tokens as transformers' cache; a forward pass adds to the copy."""
        columns = torch.split(rows_tW, [prod(part) for part in self.parts], dim=1)
        tensors = [
            column.view(-1, *part).transpose(0, 1)[None]  # [1, A, t, d]
            for column, part in zip(columns, self.parts, strict=True)
        ]
        cache = empty_cache()
        for layer in range(len(tensors) // 2):
            cache.update(tensors[2 * layer], tensors[2 * layer + 1], layer)
        return cache

    def newest(self, cache: DynamicCache, count: int) -> Tensor:
        """Return the last tokens of a cache, [count, W]."""
        parts = [part[0, :, -count:] for part in _tensors(cache)]
        return torch.cat([part.transpose(0, 1).flatten(1) for part in parts], dim=1)


def _tensors(cache: DynamicCache) -> list[Tensor]:
    found: list[Tensor] = []
    for layer in cache.layers:
        for name in ("keys", "values"):
            part = getattr(layer, name)
            if not isinstance(part, Tensor):
                raise TypeError(f"{type(layer).__name__} has no {name}")
            found.append(part)
    return found


def probe_layout(model: PreTrainedModel) -> CacheLayout:
    """Run a model on a few tokens, at once and in pieces, and return its layout.

    Raises:
        CheckpointError: it keeps something other than keys and values of every token.
    """
    try:
        with torch.no_grad():
            layout, whole, pieces = _read(model)
    except _FAULTS as error:
        raise CheckpointError(f"{_NOT_PLAIN} ({type(error).__name__}: {error})") from error
    if float((whole - pieces).abs().max()) > TOLERANCE * float(whole.abs().max()):
        raise CheckpointError(f"{_NOT_PLAIN}: it keeps state outside of it")
    return layout


def _read(model: PreTrainedModel) -> tuple[CacheLayout, Tensor, Tensor]:
    ids = torch.tensor([PROBE], device=model.device)
    whole = model(input_ids=ids, use_cache=False).logits[0, -1].float()
    first = DynamicCache()
    model(input_ids=ids[:, :2], cache=first, use_cache=True)
    layout = CacheLayout.of(first)
    again = layout.cache(layout.newest(first, 2))
    pieces = model(input_ids=ids[:, 2:], cache=again, use_cache=True)
    return layout, whole, pieces.logits[0, -1].float()
