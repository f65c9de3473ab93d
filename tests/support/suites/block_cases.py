"""Windows of cache blocks to attend to, and the process in which Triton's interpreter does it.

    TRITON_INTERPRET=1 python block_cases.py OUT      what the kernel makes of every case, and
                                                      latents of Wan that attends with it
    python block_cases.py --compile                   the kernel for a GPU; none is needed

Triton decides at its first import whether it interprets, and other tests of a process may have
imported it: so it gets a process of its own.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from reverie.kernels.block_attention import BlockTable, BlockWindow, choose_block_attention


@dataclass(frozen=True)
class BlockCase:
    """Sizes as in `block_attention.py`; a length for each session of the batch."""

    lengths: tuple[int, ...]
    heads: int
    queries: int
    own: int
    size: int
    block_tokens: int
    dtype: torch.dtype = torch.float32
    layers: int = 2
    seed: int = 0

    def inputs(self, device: str = "cpu") -> tuple[Tensor, Tensor, Tensor, BlockWindow]:
        """Return queries, own keys and values, and the windows: not one of them contiguous."""
        random = torch.Generator().manual_seed(self.seed)

        def drawn(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=random).to(device, self.dtype)

        sessions, A, d, N = len(self.lengths), self.heads, self.size, self.block_tokens
        counts = [-(-length // N) for length in self.lengths]
        storage = max(counts) + 3
        pool = drawn(storage, 2, self.layers, N, A, d)
        pool[:, :, 0] = float("nan")  # a layer that no case reads
        windows = [torch.randperm(storage, generator=random)[:count].tolist() for count in counts]
        table = BlockTable.of(windows, self.lengths, torch.device(device))
        layer = self.layers - 1
        q = drawn(sessions, self.queries, A, d).transpose(1, 2)
        k, v = (drawn(sessions, self.own, A, d).transpose(1, 2) for _ in range(2))
        return q, k, v, BlockWindow(pool[:, 0, layer], pool[:, 1, layer], table)


CASES = {
    "heads of Wan": BlockCase((12, 12), 2, 6, 6, 128, 6),
    "tiny heads": BlockCase((18,), 3, 5, 5, 8, 6),
    "heads that fill no tile": BlockCase((18,), 1, 5, 5, 20, 6),
    "ragged windows": BlockCase((0, 6, 24), 2, 6, 6, 16, 6),
    "a last block filled in part": BlockCase((13, 1), 2, 6, 6, 16, 6),
    "more queries than a tile": BlockCase((7,), 1, 70, 3, 16, 4),
    "more own keys than a tile": BlockCase((7,), 1, 3, 70, 16, 4),
    "a window of several tiles": BlockCase((150, 64), 1, 4, 4, 16, 24),
    "no own keys": BlockCase((9,), 1, 4, 0, 16, 3),
    "float16": BlockCase((40, 9), 2, 6, 6, 32, 6, torch.float16),
    "bfloat16": BlockCase((40, 9), 2, 6, 6, 32, 6, torch.bfloat16),
    "float16 with heads of Wan": BlockCase((70,), 1, 6, 6, 128, 6, torch.float16),
    "bfloat16 with heads of Wan": BlockCase((70,), 1, 6, 6, 128, 6, torch.bfloat16),
}


def run(out: Path) -> None:
    from wan_in_blocks import ragged_step, wan_latents

    attend = choose_block_attention("triton", torch.device("cpu"), torch.float32)
    made = {name: attend(*case.inputs()) for name, case in CASES.items()}
    ragged, together = ragged_step("triton")
    assert together, "windows of different lengths share a call"
    torch.save(made | {"wan": wan_latents("triton"), "ragged": ragged}, out)


def compile_for_a_gpu() -> None:
    import triton
    from triton.backends.compiler import GPUTarget

    from reverie.kernels.block_attention_triton import _attend

    sizes = {"D": 128, "TILE_Q": 64, "TILE_K": 64, "TILE_D": 128, "WIDEN": False}
    kinds = {"table": "*i32", "lengths": "*i32", "scale": "fp32"}
    kinds |= dict.fromkeys(("q_at", "k_pool", "v_pool", "k_own", "v_own", "out_at"), "*bf16")
    kinds |= dict.fromkeys(sizes, "constexpr")
    signature = {name: kinds.get(name, "i32") for name in _attend.arg_names}
    source = triton.compiler.ASTSource(fn=_attend, signature=signature, constexprs=sizes)
    made = triton.compile(
        source, target=GPUTarget("cuda", 90, 32), options={"enable_fp_fusion": True}
    )
    sys.stdout.write(f"compiled {len(made.asm['cubin']) > 0}\n")


if __name__ == "__main__":
    if sys.argv[1] == "--compile":
        compile_for_a_gpu()
    else:
        run(Path(sys.argv[1]))
