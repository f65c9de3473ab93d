"""What an instance attends with: a backend of `kernels`, chosen once, when it is loaded."""

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
    """Return what the model attends with.

    Args:
        fast: the backend that `auto` means for this model.
        tables: the model can attend to cache blocks where they lie. `triton` then names what
            `block_attention_of` gives, and here, where there is no cache to read, means `auto`.

    Raises:
        OptionError: there is no such backend, or not here.
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
    """Return what attends to cache blocks where they lie; None when windows are to be copied.

    Raises:
        OptionError: it was asked for, and cannot run here.
    """
    if options.attention != TRITON:
        return None
    try:
        return choose_block_attention(TRITON, device, dtype)
    except UnknownBackendError as error:
        raise OptionError(f"attention: {error}") from error
