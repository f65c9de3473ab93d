"""The encoder cache: found by everything that its output depends on, and by nothing less."""

import threading
from dataclasses import fields, replace

import pytest
import torch

from reverie.models.contract.encoder_cache import CacheKey, EncoderCache

KEY = CacheKey("pocket", "text", "w1", ("a lake",))
OTHERS: dict[str, object] = {
    "model": "other",
    "component": "image",
    "weights_version": "w2",
    "inputs": ("a sea",),
    "adapters": ("style",),
    "precision": "bfloat16",
}


@pytest.mark.parametrize("name", [field.name for field in fields(CacheKey)])
def test_a_change_of_any_field_is_another_entry(name: str) -> None:
    cache = EncoderCache()
    cache.put(KEY, torch.ones(1))
    other = replace(KEY, **{name: OTHERS[name]})  # type: ignore[arg-type]
    assert cache.get(other) is None
    assert cache.get(replace(KEY)) is not None
    assert (cache.hits, cache.misses) == (1, 1)


def test_the_least_recently_used_entry_goes_first() -> None:
    cache = EncoderCache(capacity=2)
    first, second, third = (replace(KEY, inputs=(text,)) for text in ("a", "b", "c"))
    cache.put(first, torch.ones(1))
    cache.put(second, torch.ones(1))
    cache.get(first)
    cache.put(third, torch.ones(1))
    assert (first in cache, second in cache, third in cache) == (True, False, True)
    assert len(cache) == 2


def test_a_new_value_takes_the_place_of_the_old_one() -> None:
    cache = EncoderCache(capacity=2)
    cache.put(KEY, torch.zeros(1))
    cache.put(KEY, torch.ones(1))
    found = cache.get(KEY)
    assert found is not None
    assert found.item() == 1.0
    assert len(cache) == 1


def test_threads_may_share_it() -> None:
    """A reading thread puts and a step thread takes, with entries falling out all the while."""
    cache = EncoderCache(capacity=4)
    keys = [replace(KEY, inputs=(str(number),)) for number in range(16)]
    failures: list[Exception] = []

    def work(shift: int) -> None:
        try:
            for number in range(2000):
                key = keys[(number * shift) % len(keys)]
                if cache.get(key) is None:
                    cache.put(key, torch.ones(1))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(shift,)) for shift in (1, 3, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert len(cache) == 4
    assert cache.hits + cache.misses == 6000
