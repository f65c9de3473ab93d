"""Attention backends, chosen once when a model is loaded.

    attention = choose_attention("auto", device, dtype)
    mixed_BAQd = attention(q_BAQd, k_BAKd, v_BAKd)

Shapes: B sessions, A heads, Q queries, K keys, d channels of a head. Every query attends to every
key: the caller selects the keys, so that no backend needs a mask.
"""

from importlib.util import find_spec
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

AUTO = "auto"


class AttentionBackend(Protocol):
    """One backend."""

    def __call__(self, q_BAQd: Tensor, k_BAKd: Tensor, v_BAKd: Tensor) -> Tensor:
        """Return softmax(q k^T / sqrt(d)) v, [B, A, Q, d], in the type of `q_BAQd`."""


class UnknownBackendError(ValueError):
    """The attention backend is unknown, or cannot run on this machine."""


def plain(q_BAQd: Tensor, k_BAKd: Tensor, v_BAKd: Tensor) -> Tensor:
    """Attention by its definition, in float32; all other backends are compared with it."""
    scores = q_BAQd.float() @ k_BAKd.float().transpose(-1, -2) * q_BAQd.shape[-1] ** -0.5
    mixed: Tensor = scores.softmax(dim=-1) @ v_BAKd.float()
    return mixed.to(q_BAQd.dtype)


def products(q_BAQd: Tensor, k_BAKd: Tensor, v_BAKd: Tensor) -> Tensor:
    """Attention by two matrix products in the tensors' own type.

    On a CPU with bfloat16 multiplication and a few hundred keys it takes 0.4 of the fused
    operation's time, but memory for every pair of query and key.
    """
    scores = (q_BAQd * q_BAQd.shape[-1] ** -0.5) @ k_BAKd.transpose(-1, -2)
    mixed: Tensor = scores.softmax(dim=-1) @ v_BAKd
    return mixed


def sdpa(q_BAQd: Tensor, k_BAKd: Tensor, v_BAKd: Tensor) -> Tensor:
    """Attention by torch's fused operation, which selects its own implementation."""
    return functional.scaled_dot_product_attention(q_BAQd, k_BAKd, v_BAKd)


def flash(q_BAQd: Tensor, k_BAKd: Tensor, v_BAKd: Tensor) -> Tensor:
    """Attention by the package flash-attn, for half-precision tensors on a CUDA device."""
    from flash_attn import flash_attn_func

    mixed: Tensor = flash_attn_func(
        q_BAQd.transpose(1, 2), k_BAKd.transpose(1, 2), v_BAKd.transpose(1, 2)
    )
    return mixed.transpose(1, 2)


BACKENDS: dict[str, AttentionBackend] = {
    "plain": plain,
    "products": products,
    "sdpa": sdpa,
    "flash": flash,
}


def choose_attention(name: str, device: torch.device, dtype: torch.dtype) -> AttentionBackend:
    """Return a backend for a model on `device` in `dtype`.

    Args:
        name: one of `BACKENDS`, or `auto`: the fastest that can run here.

    Raises:
        UnknownBackendError: the backend is unknown, or cannot run here.
    """
    can_flash = (
        device.type == "cuda"
        and dtype in (torch.float16, torch.bfloat16)
        and find_spec("flash_attn") is not None
    )
    if name == AUTO:
        return flash if can_flash else sdpa
    if name not in BACKENDS:
        known = ", ".join((AUTO, *BACKENDS))
        raise UnknownBackendError(f"unknown backend {name!r}; known: {known}")
    if name == "flash" and not can_flash:
        raise UnknownBackendError(
            "flash needs a CUDA device, half precision and the package flash-attn"
        )
    return BACKENDS[name]
