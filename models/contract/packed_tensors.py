"""Tensors that travel through a process which never looks at them, and so needs no torch."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from torch import Tensor


class PackedTensors(Mapping[str, "Tensor"]):
    """Tensors by name, which are unpacked when they are first looked at.

    It is packed once, however many processes it passes through.
    """

    __slots__ = ("_packed", "_tensors")

    def __init__(self, packed: bytes) -> None:
        """Hold what `pack` returned."""
        self._packed = packed
        self._tensors: Mapping[str, Tensor] | None = None

    @classmethod
    def pack(cls, tensors: Mapping[str, Tensor]) -> PackedTensors:
        """Return tensors in packed form; what is packed already stays as it is."""
        if isinstance(tensors, cls):
            return tensors
        return cls(pickle.dumps(dict(tensors), protocol=pickle.HIGHEST_PROTOCOL))

    def __getitem__(self, name: str) -> Tensor:
        return self._opened()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._opened())

    def __len__(self) -> int:
        return len(self._opened())

    def __reduce__(self) -> tuple[type[PackedTensors], tuple[bytes]]:
        return PackedTensors, (self._packed,)

    def _opened(self) -> Mapping[str, Tensor]:
        if self._tensors is None:
            # Only a worker of this server has packed them: see `gpu_pool/wire/connection.py`.
            self._tensors = cast("Mapping[str, Tensor]", pickle.loads(self._packed))
        return self._tensors
