import errno

import numpy as np
import pytest
import torch

from reverie.models.contract.errors import DeviceLostError, DeviceMemoryError
from reverie.models.services.device_errors import classify, retry_out_of_memory
from reverie.models.services.free_memory import free_bytes, in_words

LOST = (
    torch.AcceleratorError("CUDA error: device-side assert triggered\nCUDA kernel errors might be"),
    RuntimeError("CUDA error: an illegal memory access was encountered"),
    RuntimeError("CUDA error: uncorrectable ECC error encountered"),
    RuntimeError("CUDA error: unspecified launch failure"),
    RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered"),
    RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(handle)`"),
    RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
    RuntimeError("HIP error: an illegal memory access was encountered"),
)
MEMORY = (
    torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 139.72 GiB"
    ),
    RuntimeError("CUDA error: out of memory"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("Triton Error [CUDA]: out of memory"),
    MemoryError(),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
)
NEITHER = (
    RuntimeError("mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)"),
    RuntimeError("CUDA error: invalid argument"),
    torch.AcceleratorError("CUDA error: no kernel image is available for execution on the device"),
    RuntimeError("CUDA error: too many resources requested for launch"),
    ValueError("CUDA error: an illegal memory access was encountered"),
    OSError(errno.ENOSPC, "No space left on device"),
)


@pytest.mark.parametrize("error", LOST, ids=str)
def test_what_no_later_call_survives_is_a_lost_device(error: Exception) -> None:
    with pytest.raises(DeviceLostError, match="the device has failed: ") as raised:
        classify(error)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("error", MEMORY, ids=repr)
def test_memory_that_ran_out_is_told_whatever_says_so(error: Exception) -> None:
    told = classify(error)
    assert isinstance(told, DeviceMemoryError)
    assert str(told).startswith("out of memory on cpu: ")


@pytest.mark.parametrize("error", NEITHER, ids=repr)
def test_a_models_own_mistake_stays_what_it_is(error: Exception) -> None:
    assert classify(error) is error


def test_it_is_found_below_what_a_model_raised_over_it() -> None:
    for cause, kind in ((LOST[0], DeviceLostError), (MEMORY[0], DeviceMemoryError)):
        over = ValueError("the step failed")
        over.__cause__ = cause
        with pytest.raises(kind):
            raise classify(over)


def test_what_was_asked_for_is_told_and_what_there_is() -> None:
    told = classify(MEMORY[0])
    assert isinstance(told, DeviceMemoryError)
    assert told.asked_bytes == 2.5 * 2**30
    assert told.free_bytes is not None
    assert f"2.5 GiB were requested, {in_words(told.free_bytes)} are free" in str(told)


@pytest.mark.parametrize(
    ("ask", "asked"), [(lambda: torch.empty(2**52), "16.0 PiB"), (lambda: np.empty(2**52), "32.0")]
)
def test_what_the_libraries_here_raise_is_known(ask: object, asked: str) -> None:
    with pytest.raises(DeviceMemoryError, match=f"out of memory on cpu: {asked}"):
        retry_out_of_memory(ask)  # type: ignore[arg-type]


def test_memory_that_an_error_holds_is_let_go_of_before_the_second_try() -> None:
    held: list[bool] = []

    class Large:
        def __init__(self) -> None:
            held.append(True)

        def __del__(self) -> None:
            held.pop()

    def work() -> str:
        if held:
            raise AssertionError("what the first try held is still there")
        large = Large()
        if not tries:
            tries.append(1)
            raise MemoryError
        return f"done with {type(large).__name__}"

    tries: list[int] = []
    assert retry_out_of_memory(work) == "done with Large"


def test_any_other_error_is_raised_at_once_as_it_is() -> None:
    tries: list[int] = []

    def work() -> None:
        tries.append(1)
        raise KeyError("mistake")

    with pytest.raises(KeyError):
        retry_out_of_memory(work)
    assert tries == [1]


def test_free_memory_of_the_machine_is_some_and_not_more_than_it_has() -> None:
    there = free_bytes(torch.device("cpu"))
    assert there is not None
    assert 0 < there < 2**60
    assert [in_words(size) for size in (5, 2048, 3 * 2**29)] == ["5 bytes", "2.0 KiB", "1.5 GiB"]
