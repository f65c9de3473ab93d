"""The Triton kernel of `block_attention.py`: online softmax over blocks in place.

A program computes `TILE_Q` queries of one head of one session. It iterates over tiles of the
session's window, whose keys it finds by the block table, and then over the call's own keys. It
keeps the greatest score, the sum of weights and the weighted values (Milakov & Gimelshein 2018,
arXiv:1805.02867). The window is not copied, and no memory is needed for pairs.

Importing this module imports triton. With TRITON_INTERPRET=1 in the environment before that, the
kernel runs in numpy on a CPU, slowly, for tests.
"""

from contextlib import nullcontext

import torch
import triton
import triton.language as tl
from torch import Tensor

from reverie.kernels.block_attention import BlockWindow

INTERPRETED = bool(triton.knobs.runtime.interpret)
"""Whether kernels run on the CPU; determined when this module is imported."""
SMALLEST = 16
"""The least side of a matrix product on a GPU."""
TILE, WIDE_TILE = 64, 32
"""Queries and keys of a tile that fit in shared memory, in half precision and in float32."""


def attend(q_BAQd: Tensor, k_BAKd: Tensor, v_BAKd: Tensor, past: BlockWindow) -> Tensor:
    """Attend to windows of blocks and the call's own keys; see `BlockAttention`."""
    B, A, Q, d = q_BAQd.shape
    table = past.table
    mixed = torch.empty_like(q_BAQd, memory_format=torch.contiguous_format)
    tile = TILE if q_BAQd.element_size() == 2 else WIDE_TILE
    tile_q = min(tile, max(SMALLEST, triton.next_power_of_2(Q)))
    # A kernel is launched on the current device, which may not be that of its tensors.
    with torch.cuda.device(q_BAQd.device) if q_BAQd.is_cuda else nullcontext():
        _attend[(triton.cdiv(Q, tile_q), A, B)](
            q_BAQd,
            past.k_SNAd,
            past.v_SNAd,
            k_BAKd,
            v_BAKd,
            mixed,
            table.blocks_BM,
            table.lengths_B,
            *q_BAQd.stride(),
            *past.k_SNAd.stride(),
            *past.v_SNAd.stride(),
            *k_BAKd.stride(),
            *v_BAKd.stride(),
            *mixed.stride(),
            table.blocks_BM.stride(0),
            Q,
            k_BAKd.shape[2],
            past.k_SNAd.shape[1],
            d**-0.5,
            D=d,
            TILE_Q=tile_q,
            TILE_K=tile,
            TILE_D=max(SMALLEST, triton.next_power_of_2(d)),
            WIDEN=INTERPRETED,
            enable_fp_fusion=True,  # explicit, because the default differs between versions
        )
    return mixed


@triton.jit
def _seen(
    q, k_at, v_at, valid, channel, best, total, mixed, scale, D: tl.constexpr, WIDEN: tl.constexpr
):
    """Take one tile of keys into account."""
    inside = valid[:, None] & (channel < D)[None, :]
    k = tl.load(k_at, mask=inside, other=0.0)
    v = tl.load(v_at, mask=inside, other=0.0)
    if WIDEN:  # numpy knows no bfloat16
        k = k.to(tl.float32)
        v = v.to(tl.float32)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    scores = tl.where(valid[None, :], scores, float("-inf"))
    higher = tl.maximum(best, tl.max(scores, axis=1))
    weights = tl.exp(scores - higher[:, None])
    fade = tl.exp(best - higher)
    total = total * fade + tl.sum(weights, axis=1)
    mixed = mixed * fade[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
    return higher, total, mixed


@triton.jit
def _attend(
    q_at,
    k_pool,
    v_pool,
    k_own,
    v_own,
    out_at,
    table,
    lengths,
    q_b, q_a, q_q, q_d,
    kp_s, kp_n, kp_a, kp_d,
    vp_s, vp_n, vp_a, vp_d,
    ko_b, ko_a, ko_k, ko_d,
    vo_b, vo_a, vo_k, vo_d,
    o_b, o_a, o_q, o_d,
    table_b,
    queries,
    own,
    block_tokens,
    scale,
    D: tl.constexpr,
    TILE_Q: tl.constexpr,
    TILE_K: tl.constexpr,
    TILE_D: tl.constexpr,
    WIDEN: tl.constexpr,
):  # fmt: skip
    """Make a tile of queries; names like `q_b` are strides, of the tensor and the axis."""
    session = tl.program_id(2).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * TILE_Q + tl.arange(0, TILE_Q)
    channel = tl.arange(0, TILE_D)
    asked = (row < queries)[:, None] & (channel < D)[None, :]
    q = tl.load(
        q_at + session * q_b + head * q_a + row[:, None] * q_q + channel[None, :] * q_d,
        mask=asked,
        other=0.0,
    )
    kind = q.dtype
    if WIDEN:
        q = q.to(tl.float32)
    best = tl.full([TILE_Q], float("-inf"), tl.float32)
    total = tl.zeros([TILE_Q], tl.float32)
    mixed = tl.zeros([TILE_Q, TILE_D], tl.float32)
    length = tl.load(lengths + session)
    for start in range(0, length, TILE_K):
        place = start + tl.arange(0, TILE_K)
        valid = place < length
        entry = table + session * table_b + place // block_tokens
        block = tl.load(entry, mask=valid, other=0).to(tl.int64)
        token = place % block_tokens
        best, total, mixed = _seen(
            q,
            k_pool + head * kp_a + (block * kp_s + token * kp_n)[:, None] + channel[None, :] * kp_d,
            v_pool + head * vp_a + (block * vp_s + token * vp_n)[:, None] + channel[None, :] * vp_d,
            valid, channel, best, total, mixed, scale, D, WIDEN,
        )  # fmt: skip
    for start in range(0, own, TILE_K):
        place = start + tl.arange(0, TILE_K)
        k_base, v_base = k_own + session * ko_b + head * ko_a, v_own + session * vo_b + head * vo_a
        best, total, mixed = _seen(
            q,
            k_base + place[:, None] * ko_k + channel[None, :] * ko_d,
            v_base + place[:, None] * vo_k + channel[None, :] * vo_d,
            place < own, channel, best, total, mixed, scale, D, WIDEN,
        )  # fmt: skip
    out = out_at + session * o_b + head * o_a + row[:, None] * o_q + channel[None, :] * o_d
    tl.store(out, (mixed / total[:, None]).to(kind), mask=asked)
