"""The attention backend of an instance, chosen once when it is loaded."""

import torch

from reverie.kernels.attention import (
    AUTO,
    BACKENDS,
    AttentionBackend,
    UnknownBackendError,
    choose_attention,
)
from reverie.kernels.block_attention import TRITON, BlockAttention, choose_block_attention
from reverie.models.contract.errors import OptionError
from reverie.models.contract.instance import LoadOptions


def attention_of(
    options: LoadOptions,
    device: torch.device,
    dtype: torch.dtype,
    *,
    fast: str = AUTO,
    tables: bool = False,
) -> AttentionBackend:
    """Return the attention backend of a model.

    Args:
        fast: the backend that `auto` chooses for this model.
        tables: whether the model can attend to cache blocks in place. `triton` then selects what
            `block_attention_of` returns; attention without a cache is `auto` then.

    Raises:
        OptionError: the backend is unknown, or cannot run here.
    """
    given = options.attention
    name = fast if given == AUTO or (tables and given == TRITON) else given
    try:
        return choose_attention(name, device, dtype)
    except UnknownBackendError as error:
        also = f", {TRITON}" if tables and name not in BACKENDS else ""
        raise OptionError(f"attention: {error}{also}") from error


def block_attention_of(
    options: LoadOptions, device: torch.device, dtype: torch.dtype
) -> BlockAttention | None:
    """Return the attention over cache blocks in place; None when windows are copied.

    Raises:
        OptionError: it was requested and cannot run here.
    """
    if options.attention != TRITON:
        return None
    try:
        return choose_block_attention(TRITON, device, dtype)
    except UnknownBackendError as error:
        raise OptionError(f"attention: {error}") from error
