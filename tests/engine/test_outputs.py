"""What may be shown."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from stub_model import StubFamily
from torch import Tensor

from reverie.engine.emissions import FaultCode
from reverie.engine.errors import BadStepError
from reverie.engine.outputs import CheckedFrames, checked_outputs, to_pixels, to_samples
from reverie.models.contract.blocks import BlockId
from reverie.models.contract.controls import NO_CONTROLS
from reverie.models.contract.loop import (
    AudioOutput,
    BatchKey,
    FrameOutput,
    Output,
    StepResult,
    StepUnit,
    TextOutput,
    WorkPlan,
)

LOOP = StubFamily().spec.loops[0]
GOOD = torch.zeros((2, 64, 64, 3), dtype=torch.uint8)


@dataclass(frozen=True)
class State:
    blocks: tuple[BlockId, ...] = ()


UNIT = StepUnit(
    WorkPlan("decode", BatchKey("i", "w", "l", "decode"), streams=("video",)),
    State((BlockId(1),)),
    NO_CONTROLS,
    (BlockId(2),),
)


def check(*outputs: Output, checks: tuple[Tensor, ...] = (), blocks: tuple[int, ...] = ()) -> None:
    state = State(tuple(BlockId(block) for block in blocks))
    checked_outputs(UNIT, StepResult(state, outputs, checks), LOOP)


def fault_of(*outputs: Output, **rest: tuple[Tensor, ...] | tuple[int, ...]) -> FaultCode:
    with pytest.raises(BadStepError) as raised:
        check(*outputs, **rest)  # type: ignore[arg-type]
    return raised.value.code


def test_frames_are_copied_so_that_a_kernel_may_reuse_its_buffer() -> None:
    buffer = torch.zeros((1, 64, 64, 3), dtype=torch.uint8)
    result = StepResult(State(), (FrameOutput("video", buffer),))
    [output] = checked_outputs(UNIT, result, LOOP)
    buffer.fill_(9)
    assert isinstance(output, CheckedFrames)
    assert output.frames.max() == 0
    assert output.frames.flags.c_contiguous


def test_floats_become_pixels_rounded_and_clamped() -> None:
    values = torch.tensor([-0.5, 0.0, 0.5, 0.998, 1.0, 7.0])
    assert to_pixels(values).tolist() == [0, 0, 128, 254, 255, 255]
    assert to_pixels(values).dtype == np.uint8


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_never_becomes_a_pixel(bad: float) -> None:
    frames = GOOD.float()
    frames[1, 2, 3, 0] = bad
    assert fault_of(FrameOutput("video", frames)) is FaultCode.NON_FINITE
    assert fault_of(checks=(torch.tensor([1.0, bad]),)) is FaultCode.NON_FINITE


def test_finite_checks_of_any_type_pass() -> None:
    check(checks=(torch.ones(3), torch.ones(2, dtype=torch.int64), torch.ones(2).bfloat16()))


@pytest.mark.parametrize(
    "shape", [(2, 64, 63, 3), (2, 63, 64, 3), (2, 64, 64, 4), (64, 64, 3), (0, 64, 64, 3)]
)
def test_frames_of_another_shape_than_declared_are_refused(shape: tuple[int, ...]) -> None:
    frames = torch.zeros(shape, dtype=torch.uint8)
    assert fault_of(FrameOutput("video", frames)) is FaultCode.BAD_SHAPE


def test_frames_of_another_type_are_refused() -> None:
    assert fault_of(FrameOutput("video", GOOD.int())) is FaultCode.BAD_SHAPE


def test_streams_that_the_plan_does_not_feed_are_refused() -> None:
    assert fault_of(FrameOutput("other", GOOD)) is FaultCode.BAD_SHAPE
    assert fault_of(TextOutput("video", "hello")) is FaultCode.BAD_SHAPE


def test_a_state_may_refer_to_the_old_blocks_and_the_reserved_ones_only() -> None:
    check(blocks=(1, 2))
    assert fault_of(blocks=(1, 3)) is FaultCode.BAD_SHAPE


def test_sound_becomes_samples_rounded_and_clamped_in_memory_of_its_own() -> None:
    values = torch.tensor([[-2.0], [-1.0], [0.0], [0.5], [1.0]])
    assert to_samples(values, 1)[:, 0].tolist() == [-32767, -32767, 0, 16384, 32767]
    kept = torch.full((3, 2), 5, dtype=torch.int16)
    samples = to_samples(kept, 2)
    kept.fill_(9)
    assert samples.dtype == np.int16
    assert samples.max() == 5


@pytest.mark.parametrize("shape", [(8,), (8, 1), (8, 6), (0, 2), (1, 8, 2)])
def test_sound_of_another_shape_than_declared_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadStepError) as raised:
        to_samples(torch.zeros(shape), 2)
    assert raised.value.code is FaultCode.BAD_SHAPE


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_never_becomes_a_sample(bad: float) -> None:
    with pytest.raises(BadStepError) as raised:
        to_samples(torch.tensor([[0.0], [bad]]), 1)
    assert raised.value.code is FaultCode.NON_FINITE


def test_sound_of_another_type_or_for_a_stream_of_pictures_is_refused() -> None:
    with pytest.raises(BadStepError):
        to_samples(torch.zeros((4, 1), dtype=torch.int32), 1)
    assert fault_of(AudioOutput("video", torch.zeros((4, 1)))) is FaultCode.BAD_SHAPE


def test_a_sum_that_overflows_is_not_taken_for_a_fault() -> None:
    to_pixels(torch.full((1, 64, 64, 3), 3e38))
