"""Device failures, told from a model's own errors by what libraries raise for them.

After running out of memory a device recovers once something is freed. A failed device does not:
after an illegal access, for example, every later call of the process fails, and only another
process helps.
"""

import errno
import gc
import logging
import re
from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

from reverie.models.contract.errors import DeviceLostError, DeviceMemoryError
from reverie.models.services.free_memory import free_bytes, in_words

logger = logging.getLogger(__name__)

T = TypeVar("T")

_MEMORY = re.compile(
    r"DefaultCPUAllocator: (can't allocate|not enough) memory"
    r"|(CUDA|HIP)( error:|) out of memory|Triton Error \[\w+\]: out of memory"
    r"|CU(BLAS|DNN|SOLVER|SPARSE|FFT)_STATUS_ALLOC_FAILED|hipErrorOutOfMemory|MPS backend out of",
)
_LOST = re.compile(
    r"(CUDA|HIP) error:|(CUDA|HIP) driver error:|Triton Error \[\w+\]:|NCCL (E|e)rror"
    r"|CU(BLAS|DNN|SOLVER|SPARSE)_STATUS_(EXECUTION_FAILED|INTERNAL_ERROR|MAPPING_ERROR)"
    r"|cudaError(LaunchFailure|IllegalAddress|LaunchTimeout|Assert|ECCUncorrectable)"
    r"|[Dd]evice-side assert|uncorrectable ECC|GPU is lost",
)
_REFUSED = re.compile(
    r"invalid (argument|configuration|device|resource|value)|no kernel image|too many resources"
    r"|not supported|stream is capturing|peer access"
)
"""Calls that the device refuses: nothing has run, and the device keeps working."""

_ASKED = re.compile(r"([Tt]ried|Unable) to allocate ([\d.]+) (bytes|[KMGTPE]iB)")
_UNITS = {"bytes": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4, "PiB": 5, "EiB": 6}


def classify(error: Exception, device: torch.device | None = None) -> Exception:
    """Return a model's error unchanged, or as `DeviceMemoryError` when memory ran out.

    Args:
        error: what a model raised.
        device: where it computes. It is synchronised, because it may have failed asynchronously
            while the model raised another error.

    Raises:
        DeviceLostError: the device has failed, and nothing more can be done in this process.
    """
    for each in _chain(error):
        if isinstance(each, DeviceLostError):
            raise each
        if isinstance(each, DeviceMemoryError):
            return each
        if _is_memory(each):
            return _memory_error(each, device)
        if _is_lost(each):
            raise DeviceLostError(f"the device has failed: {_line(each)}") from error
    _require_device(error, device)
    return error


def retry_out_of_memory(work: Callable[[], T], device: torch.device | None = None) -> T:
    """Call `work`; when memory runs out, free cached memory and call it once more.

    Raises:
        DeviceMemoryError: memory ran out again.
        DeviceLostError: the device has failed.
        Exception: any other error of `work`, unchanged.
    """
    for attempt in range(2):
        try:
            return work()
        except Exception as error:
            told = classify(error, device)
            if not isinstance(told, DeviceMemoryError):
                raise
            if attempt:
                raise told from None
            logger.warning("%s; trying again", told)
        # Only now are the tensors freed that the error's frames held.
        free_cached()
    raise AssertionError("the second attempt returns or raises")


def free_cached() -> None:
    """Free memory that is cached for later use."""
    gc.collect()
    if _has_cuda():
        torch.cuda.empty_cache()


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, newest first."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)


def _is_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and _MEMORY.search(str(error)) is not None


def _is_lost(error: BaseException) -> bool:
    if not isinstance(error, RuntimeError):
        return False
    text = str(error)
    is_device = isinstance(error, torch.AcceleratorError) or _LOST.search(text) is not None
    return is_device and not _REFUSED.search(_line(error))


def _require_device(error: Exception, device: torch.device | None) -> None:
    if device is None or device.type != "cuda" or not _has_cuda():
        return
    try:
        torch.cuda.synchronize(device)
    except RuntimeError as lost:
        raise DeviceLostError(f"the device has failed: {_line(lost)}") from error


def _memory_error(error: BaseException, device: torch.device | None) -> DeviceMemoryError:
    """Return the error to report; it holds no frames, and so no tensors."""
    if found := _ASKED.search(str(error)):
        _, number, unit = found.groups()
        asked = round(float(number) * 1024 ** _UNITS[unit])
    else:
        asked = None
    on_host = isinstance(error, MemoryError | OSError) or "DefaultCPU" in str(error)
    where = torch.device("cpu") if on_host or device is None else device
    there = free_bytes(where)
    wanted = f"{in_words(asked)} were requested, " if asked is not None else ""
    left = f"{in_words(there)} are free" if there is not None else "the free memory is unknown"
    return DeviceMemoryError(f"out of memory on {where}: {wanted}{left}", asked, there)


def _has_cuda() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def _line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
