"""What a step put out: checked, copied out of the kernel's memory, and given its media time."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reverie.engine.emissions import FaultCode, Frames, Samples
from reverie.engine.errors import BadStepError
from reverie.models.contract.loop import (
    AudioOutput,
    FrameOutput,
    Output,
    StepResult,
    StepUnit,
    TextOutput,
)
from reverie.models.contract.spec import LoopSpec, StreamKind, StreamSpec


@dataclass(frozen=True, slots=True)
class CheckedFrames:
    """RGB frames [F, H, W, 3] that no other code refers to."""

    stream: str
    frames: Frames


@dataclass(frozen=True, slots=True)
class CheckedSamples:
    """Sound [N, C] that no other code refers to."""

    stream: str
    samples: Samples


FrameMemory = Callable[[tuple[int, ...]], Frames]
"""Returns memory for frames of a shape; whatever is in it is overwritten."""


def new_memory(shape: tuple[int, ...]) -> Frames:
    """Return memory of this process: the `FrameMemory` where frames are not sent to another."""
    return np.empty(shape, np.uint8)


CheckedOutput = CheckedFrames | CheckedSamples | TextOutput

_KINDS = {
    FrameOutput: StreamKind.VIDEO,
    AudioOutput: StreamKind.AUDIO,
    TextOutput: StreamKind.TEXT,
}


def checked_outputs(
    unit: StepUnit[Any],
    result: StepResult[Any],
    loop: LoopSpec,
    memory: FrameMemory = new_memory,
) -> tuple[CheckedOutput, ...]:
    """Return the outputs of a unit, ready to go out.

    Args:
        unit: what ran.
        result: what the kernel returned for it.
        loop: whose unit it is.
        memory: where pixels are written to.

    Raises:
        BadStepError: a check is not finite, an output is not as declared, or the next state refers
            to a block that it was not given.
    """
    seen = [block for peer in unit.controls.peers.values() for block in peer.blocks]
    if not set(result.state.blocks) <= {*unit.state.blocks, *unit.blocks, *seen}:
        raise BadStepError(FaultCode.BAD_SHAPE, "the next state refers to foreign blocks")
    for check in result.checks:
        _require_finite(check, "a check")
    streams = {stream.name: stream for stream in loop.streams if stream.name in unit.plan.streams}
    return tuple(_checked(output, streams.get(output.stream), memory) for output in result.outputs)


def is_media(output: Output | CheckedOutput) -> bool:
    """Tell whether it can be seen or heard; words take no time of the viewer's."""
    return not isinstance(output, TextOutput)


def _checked(output: Output, stream: StreamSpec | None, memory: FrameMemory) -> CheckedOutput:
    kind = _KINDS[type(output)]
    if stream is None or stream.kind is not kind:
        message = f"{kind} for stream {output.stream!r}, which the plan does not feed"
        raise BadStepError(FaultCode.BAD_SHAPE, message)
    if isinstance(output, TextOutput):
        return output
    if isinstance(output, AudioOutput):
        return CheckedSamples(output.stream, to_samples(output.samples_NC, stream.channels))
    frames_FHWC = output.frames_FHWC
    shape = tuple(frames_FHWC.shape)
    if len(shape) != 4 or shape[1:] != (stream.height, stream.width, 3) or not shape[0]:
        message = f"frames {list(shape)} for a stream of {stream.width}x{stream.height}"
        raise BadStepError(FaultCode.BAD_SHAPE, message)
    return CheckedFrames(output.stream, to_pixels(frames_FHWC, memory))


def to_pixels(frames_FHWC: Tensor, memory: FrameMemory = new_memory) -> Frames:
    """Return uint8 pixels in `memory`, of uint8 pixels or floats in 0..1.

    Raises:
        BadStepError: a value is not finite, or the type is neither.
    """
    if frames_FHWC.is_floating_point():
        _require_finite(frames_FHWC, "a frame")
        frames_FHWC = frames_FHWC.clamp(0, 1).mul(255).round()
        if frames_FHWC.device.type != "cpu":
            frames_FHWC = frames_FHWC.to(torch.uint8)  # a fourth of the bytes leaves the device
    elif frames_FHWC.dtype is not torch.uint8:
        raise BadStepError(FaultCode.BAD_SHAPE, f"frames of type {frames_FHWC.dtype}")
    # The only copy that the worker makes. A kernel may write into its memory in its next step.
    pixels = memory(tuple(frames_FHWC.shape))
    torch.from_numpy(pixels).copy_(frames_FHWC)
    return pixels


def to_samples(samples_NC: Tensor, channels: int) -> Samples:
    """Return int16 samples in new memory, of int16 samples or floats in -1..1.

    Raises:
        BadStepError: a value is not finite, the type is neither, or the shape is another.
    """
    shape = tuple(samples_NC.shape)
    if len(shape) != 2 or shape[1] != channels or not shape[0]:
        message = f"samples {list(shape)} for a stream of {channels} channels"
        raise BadStepError(FaultCode.BAD_SHAPE, message)
    if samples_NC.is_floating_point():
        _require_finite(samples_NC, "a sample")
        samples_NC = samples_NC.clamp(-1, 1).mul(32767).round().to(torch.int16)
    elif samples_NC.dtype is not torch.int16:
        raise BadStepError(FaultCode.BAD_SHAPE, f"samples of type {samples_NC.dtype}")
    return np.array(samples_NC.cpu().numpy(), copy=True, order="C")


def _require_finite(values: Tensor, what: str) -> None:
    # A sum over anything that is not finite is not finite either, and costs a twentieth of looking
    # at each value; only a sum that overflowed needs the second look.
    if not values.is_floating_point() or math.isfinite(float(values.sum(dtype=torch.float32))):
        return
    if not bool(torch.isfinite(values).all()):
        raise BadStepError(FaultCode.NON_FINITE, f"{what} is not finite")


class OutputClock:
    """Gives frames their presentation times, in microseconds, without drift from rounding."""

    def __init__(self, streams: Sequence[StreamSpec], start_us: int = 0) -> None:
        """Begin every stream at `start_us`."""
        self._rates = {stream.name: stream.rate_hz for stream in streams if stream.rate_hz > 0}
        self._frames = dict.fromkeys(self._rates, 0)
        self._starts_us = dict.fromkeys(self._rates, start_us)
        self._start_us = start_us

    @property
    def next_us(self) -> int:
        """When the next frame of the stream that is furthest begins."""
        return max((self.stream_us(name) for name in self._rates), default=self._start_us)

    def stream_us(self, stream: str) -> int:
        """Return when the next frame of `stream` begins."""
        rate = self._rates.get(stream)
        if not rate:
            return self._start_us
        return self._starts_us[stream] + round(self._frames[stream] * 1_000_000 / rate)

    def duration_us(self, stream: str) -> int:
        """Return how long one frame of `stream` is shown."""
        return round(1_000_000 / self._rates[stream])

    def put_out(self, stream: str, frames: int) -> int:
        """Count `frames` (or samples); return when the first of them begins."""
        pts_us = self.stream_us(stream)
        self._frames[stream] += frames
        return pts_us

    def align(self, at_us: int = 0) -> None:
        """Have every stream continue at the same time, after a chunk was cut short.

        Args:
            at_us: not before this time.
        """
        self._start_us = max(self.next_us, at_us)
        self._starts_us = dict.fromkeys(self._rates, self._start_us)
        self._frames = dict.fromkeys(self._rates, 0)

    def catch_up(self, limit_us: int) -> None:
        """Have a stream that lags by more than `limit_us` continue with the one that is furthest.

        So a model whose sound is a little shorter than its pictures stays in step with them:
        the sound has a gap now and then.
        """
        next_us = self.next_us
        for name in self._rates:
            if next_us - self.stream_us(name) > limit_us:
                self._starts_us[name], self._frames[name] = next_us, 0
