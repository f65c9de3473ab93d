"""Where an instance computes."""

import platform
import resource

import pytest
import torch

from reverie.models.contract.errors import OptionError
from reverie.models.contract.instance import LoadOptions
from reverie.models.services.placement import device_of

TENSOR_BYTES = 4 * 2**20
TENSORS, STEPS = 10, 5


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library, other rules")
def test_memory_that_a_step_frees_is_there_for_the_next() -> None:
    device_of(LoadOptions(device="cpu"))
    step()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(STEPS):
        step()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    pages = STEPS * TENSORS * TENSOR_BYTES // resource.getpagesize()
    assert faults < pages / 10


def step() -> None:
    """Make tensors, and free all of them."""
    made = [torch.ones(TENSOR_BYTES, dtype=torch.uint8) for _ in range(TENSORS)]
    del made


def test_a_device_that_is_not_here_is_refused_by_its_name() -> None:
    with pytest.raises(OptionError, match="'nowhere' cannot be used here"):
        device_of(LoadOptions(device="nowhere"))
