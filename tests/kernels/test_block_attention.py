"""Attention over cache blocks: the Triton kernel, interpreted, against gather-then-attend."""

import os
import subprocess
import sys
from pathlib import Path

import block_cases
import pytest
import torch
from block_cases import CASES
from torch import Tensor
from wan_in_blocks import ragged_step, wan_latents

from reverie.kernels.attention import UnknownBackendError, plain
from reverie.kernels.block_attention import (
    GatheredAttention,
    block_backends,
    choose_block_attention,
)

CPU = torch.device("cpu")
TOLERANCE = {torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 1e-2}
LIMIT_S = 120

linux = pytest.mark.skipif(sys.platform != "linux", reason="triton is made for Linux only")


def in_a_process(argument: str, **environment: str) -> str:
    """Run the cases in a process of their own; return what it says."""
    inherited = {key: os.environ[key] for key in os.environ if not key.startswith("TRITON_")}
    inherited["PYTHONPATH"] = os.pathsep.join(sys.path)  # where the cases find their support
    done = subprocess.run(
        [sys.executable, block_cases.__file__, argument],
        env={**inherited, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tensor]:
    out = tmp_path_factory.mktemp("triton") / "made.pt"
    in_a_process(str(out), TRITON_INTERPRET="1")
    made: dict[str, Tensor] = torch.load(out, weights_only=True)
    return made


@linux
@pytest.mark.parametrize("name", CASES)
def test_the_kernel_makes_what_gather_and_the_equation_make(
    interpreted: dict[str, Tensor], name: str
) -> None:
    case = CASES[name]
    expected, made = GatheredAttention(plain)(*case.inputs()), interpreted[name]
    assert made.dtype is case.dtype
    torch.testing.assert_close(made, expected, atol=TOLERANCE[case.dtype], rtol=0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("name", CASES)
def test_the_kernel_makes_the_same_on_a_gpu(name: str) -> None:
    case = CASES[name]
    attend = choose_block_attention("triton", torch.device("cuda"), case.dtype)
    made, expected = attend(*case.inputs("cuda")), GatheredAttention(plain)(*case.inputs("cuda"))
    torch.testing.assert_close(made, expected, atol=2 * TOLERANCE[case.dtype], rtol=0)


@linux
def test_wan_makes_the_same_video_from_blocks_in_place_as_from_a_copy(
    interpreted: dict[str, Tensor],
) -> None:
    torch.testing.assert_close(interpreted["wan"], wan_latents("auto"), atol=2e-5, rtol=0)


@linux
def test_sessions_with_windows_of_different_lengths_share_a_call_when_blocks_stay_in_place(
    interpreted: dict[str, Tensor],
) -> None:
    apart, together = ragged_step("auto")
    assert not together, "copies are stacked, and have one length"
    torch.testing.assert_close(interpreted["ragged"], apart, atol=2e-5, rtol=0)


@linux
def test_the_kernel_compiles_for_a_gpu_that_is_not_here(tmp_path: Path) -> None:
    assert in_a_process("--compile", TRITON_CACHE_DIR=str(tmp_path)).split() == ["compiled", "True"]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("backend", ["products", "sdpa"])
def test_what_is_gathered_is_attended_to_alike_by_every_backend(name: str, backend: str) -> None:
    case = CASES[name]
    made = choose_block_attention(backend, CPU, case.dtype)(*case.inputs())
    tolerance = 4 * TOLERANCE[case.dtype]
    torch.testing.assert_close(
        made, GatheredAttention(plain)(*case.inputs()), atol=tolerance, rtol=0
    )


def test_a_session_sees_its_own_window_in_order_and_then_the_call_itself() -> None:
    case = CASES["a last block filled in part"]
    q, k, v, past = case.inputs()
    for row, length in enumerate(case.lengths):
        seen = [
            (past.k_SNAd[past.table.blocks_BM[row, at // 6], at % 6], at) for at in range(length)
        ]
        keys = torch.stack([key for key, _ in seen] + list(k[row].transpose(0, 1)))
        values = torch.stack(
            [past.v_SNAd[past.table.blocks_BM[row, at // 6], at % 6] for at in range(length)]
            + list(v[row].transpose(0, 1))
        )
        weights = (torch.einsum("aqd,kad->aqk", q[row], keys) / case.size**0.5).softmax(-1)
        expected = torch.einsum("aqk,kad->aqd", weights, values)
        torch.testing.assert_close(
            GatheredAttention()(q, k, v, past)[row], expected, atol=2e-6, rtol=0
        )


def test_triton_is_refused_where_there_is_no_gpu_to_run_it() -> None:
    with pytest.raises(UnknownBackendError, match="triton"):
        choose_block_attention("triton", CPU, torch.float32)


def test_an_unknown_backend_is_refused_by_name() -> None:
    assert block_backends()[-1] == "triton"
    with pytest.raises(UnknownBackendError, match="unknown backend 'quick'; known:"):
        choose_block_attention("quick", CPU, torch.float32)


def test_what_stands_behind_a_windows_end_is_not_read() -> None:
    q, k, v, past = CASES["ragged windows"].inputs()
    expected = GatheredAttention()(q, k, v, past)
    past.table.blocks_BM[1, 1:] = -1
    assert torch.equal(GatheredAttention()(q, k, v, past), expected)


def test_importing_the_house_does_not_import_triton() -> None:
    told = (
        "import sys, reverie.cli, reverie.models.wan.spec, reverie.kernels.block_attention; "
        "print('triton' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, timeout=LIMIT_S, check=True
    )
    assert done.stdout.strip() == "False"
