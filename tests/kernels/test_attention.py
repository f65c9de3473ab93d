"""Every attention backend against the plain one."""

from importlib.util import find_spec

import pytest
import torch

from reverie.kernels.attention import BACKENDS, UnknownBackendError, choose_attention, plain

CPU = torch.device("cpu")


def on_this_machine() -> list[str]:
    found = []
    for name in BACKENDS:
        try:
            choose_attention(name, CPU, torch.float32)
        except UnknownBackendError:
            continue
        found.append(name)
    return found


class TestBackends:
    """All backends compute the same numbers."""

    @pytest.mark.parametrize("name", on_this_machine())
    @pytest.mark.parametrize("shape", [(1, 1, 1, 8), (2, 3, 5, 16), (1, 4, 64, 20)])
    def test_it_computes_what_the_plain_one_computes(
        self, name: str, shape: tuple[int, int, int, int]
    ) -> None:
        B, A, Q, d = shape
        random = torch.Generator().manual_seed(1)
        q = torch.randn(B, A, Q, d, generator=random)
        k, v = (torch.randn(B, A, 2 * Q + 1, d, generator=random) for _ in range(2))
        mixed = choose_attention(name, CPU, torch.float32)(q, k, v)
        torch.testing.assert_close(mixed, plain(q, k, v), atol=1e-5, rtol=0)

    @pytest.mark.gpu
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
    @pytest.mark.parametrize("name", ["sdpa", "flash", "products"])
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_it_computes_on_a_gpu_what_the_plain_one_computes(
        self, name: str, dtype: torch.dtype
    ) -> None:
        gpu = torch.device("cuda")
        if name == "flash" and find_spec("flash_attn") is None:
            pytest.skip("flash-attn is not installed")
        random = torch.Generator(gpu).manual_seed(1)
        q, k, v = (
            torch.randn(2, 3, length, 128, generator=random, device=gpu).to(dtype)
            for length in (65, 130, 130)
        )
        mixed = choose_attention(name, gpu, dtype)(q, k, v)
        torch.testing.assert_close(mixed, plain(q, k, v), atol=2e-2, rtol=0)

    def test_a_cpu_gets_torchs_own(self) -> None:
        assert choose_attention("auto", CPU, torch.float32) is BACKENDS["sdpa"]

    def test_an_unknown_backend_is_refused_by_name(self) -> None:
        with pytest.raises(UnknownBackendError, match="unknown backend 'quick'; known:"):
            choose_attention("quick", CPU, torch.float32)

    def test_flash_is_refused_where_it_cannot_run(self) -> None:
        with pytest.raises(UnknownBackendError, match="flash needs a CUDA device"):
            choose_attention("flash", CPU, torch.bfloat16)
