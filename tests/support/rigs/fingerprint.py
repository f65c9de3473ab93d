"""A hash over everything that a state is made of, contents of its cache blocks included."""

import random
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import torch

from reverie.models.contract.instance import ModelInstance


def fingerprint(state: Any, instance: ModelInstance) -> str:
    """Return a hash that changes when anything of `state` is edited."""
    digest = blake2b(digest_size=16)
    _feed(digest, state)
    for block in state.blocks:
        assert instance.blocks is not None, "blocks come from a pool"
        _feed(digest, instance.blocks.view(block))
    return digest.hexdigest()


def random_fingerprint() -> str:
    """Return a hash over every global random generator of the process."""
    digest = blake2b(digest_size=16)
    _feed(digest, torch.get_rng_state())
    _feed(digest, repr(random.getstate()))
    _feed(digest, repr(np.random.get_state()))
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    digest.update(type(value).__name__.encode())
    if isinstance(value, torch.Tensor):
        digest.update(f"{value.dtype}{tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value):
        for field in fields(value):
            _feed(digest, getattr(value, field.name))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _feed(digest, key)
            _feed(digest, item)
    elif isinstance(value, tuple | list):
        for item in value:
            _feed(digest, item)
    else:
        digest.update(repr(value).encode())
