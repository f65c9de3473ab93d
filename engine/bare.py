"""A kernel with nothing around it: what the runtime is measured against."""

import time
from dataclasses import dataclass
from typing import Any

import torch

from reverie.engine.history import BlockHolder
from reverie.engine.outputs import to_pixels
from reverie.models.controls import NO_CONTROLS, Controls
from reverie.models.instance import ModelInstance
from reverie.models.loop import (
    FrameOutput,
    Idle,
    LoopKernel,
    LoopRequest,
    StepBatch,
    StepUnit,
    WorkPlan,
)


@dataclass(frozen=True, slots=True)
class BareRun:
    """What a bare loop did in `seconds`.

    Attributes:
        shown_s: when each chunk was out, in seconds from the start.
    """

    chunks: int
    frames: int
    units: int
    seconds: float
    shown_s: tuple[float, ...]


def run_bare(
    kernel: LoopKernel[Any],
    instance: ModelInstance,
    request: LoopRequest,
    chunks: int,
    controls: Controls = NO_CONTROLS,
) -> BareRun:
    """Run `chunks` chunks of one session, the way a script would, and count.

    No lead, no checks, no history, no other sessions. Pixels are brought to the CPU as they would
    be to do anything with them. `controls` act in every step that takes some.
    """
    holder = BlockHolder(instance.blocks)
    state = kernel.init_state(request, instance)
    frames = units = 0
    shown_s: list[float] = []
    started = time.perf_counter()
    with torch.inference_mode():
        while len(shown_s) < chunks:
            plan = kernel.plan_step(state, controls)
            if isinstance(plan, Idle):
                break
            blocks = holder.reserve(plan.writes)
            unit = StepUnit(plan, state, _acting(plan, controls), blocks)
            result = kernel.run_step(StepBatch(instance, (unit,)))[0]
            holder.retain(result.state.blocks)
            holder.release((*blocks, *state.blocks))
            state = result.state
            for output in result.outputs:
                if isinstance(output, FrameOutput):
                    frames += len(to_pixels(output.frames_FHWC))
            units += 1
            if plan.shows:
                shown_s.append(time.perf_counter() - started)
    seconds = time.perf_counter() - started
    holder.release(state.blocks)
    return BareRun(len(shown_s), frames, units, seconds, tuple(shown_s))


def _acting(plan: WorkPlan, controls: Controls) -> Controls:
    return controls if plan.takes_controls else NO_CONTROLS
