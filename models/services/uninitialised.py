"""Networks whose weights come from a file, made without drawing random ones first."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import init
from torch.overrides import TorchFunctionMode


@contextmanager
def uninitialised() -> Iterator[None]:
    """Make modules in this block with uninitialised memory instead of drawn weights.

    On the device `meta`, drawing also makes torch import its compiler, as does arithmetic; that
    takes longer than the rest of a worker's start.
    """
    with _NothingDrawn():
        yield


class _NothingDrawn(TorchFunctionMode):
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Skip functions that would fill a tensor with random numbers."""
        given = kwargs or {}
        if getattr(func, "__module__", "") == init.__name__:
            return args[0] if args else given["tensor"]
        if func in (torch.randn, torch.rand):
            func = torch.empty
        return func(*args, **given)
