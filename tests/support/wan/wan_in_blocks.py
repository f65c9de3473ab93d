"""Tiny Wan under one attention backend or another."""

from dataclasses import replace

import torch
from loop_rig import Rig
from tiny_wan import TinyWan, tiny_options
from torch import Tensor

from reverie.engine.inputs import ControlId, PromptInput
from reverie.models.contract.controls import Controls
from reverie.models.contract.loop import LoopRequest, StepBatch, StepUnit, WorkPlan
from reverie.models.wan.state import WanPhase, WanState


def wan_rig(attention: str) -> Rig:
    return Rig(TinyWan(), replace(tiny_options(sessions=2), attention=attention))


def wan_latents(attention: str) -> Tensor:
    """Run two sessions of tiny Wan in batches, past a full window and a new prompt.

    Returns:
        the clean latents of their windows, [2, frames, Z, h, w].
    """
    rig = wan_rig(attention)
    for name in ("a", "b"):
        rig.open(LoopRequest(name, ord(name), "a lake", {"on_prompt": 0}))
    rig.run(lambda: all(len(rig.frames(name)) >= 3 for name in rig.drivers))
    for driver in rig.drivers.values():
        driver.push([PromptInput(ControlId("p"), "night")])
    rig.run(lambda: all(len(rig.frames(name)) >= 5 for name in rig.drivers))
    states = [driver.state for driver in rig.drivers.values()]
    return torch.stack([torch.stack([f.clean_Zhw for f in state.window]) for state in states])


def ragged_step(attention: str) -> tuple[Tensor, bool]:
    """Make a denoise call for two sessions that look back on one block and on two.

    Returns:
        their points after it, [2, F, Z, h, w], and whether their plans let them share the call.
    """
    rig = wan_rig(attention)
    states = [aged(rig, seed, frames) for seed, frames in ((1, 3), (2, 6))]
    plans = [rig.kernel.plan_step(state, Controls()) for state in states]
    one, other = [plan for plan in plans if isinstance(plan, WorkPlan)]
    units = [StepUnit(one, states[0], Controls()), StepUnit(other, states[1], Controls())]
    together = one.batch_key == other.batch_key
    batches = [units] if together else [[unit] for unit in units]
    made = [
        result.state.point_FZhw
        for batch in batches
        for result in rig.kernel.run_step(StepBatch(rig.instance, tuple(batch)))
    ]
    return torch.stack(made), together


def aged(rig: Rig, seed: int, frames: int) -> WanState:
    """Run a session by hand until so many latent frames are in its cache."""
    pool = rig.instance.blocks
    assert pool is not None
    state: WanState = rig.kernel.init_state(LoopRequest("s", seed, "a lake"), rig.instance)
    while state.frame < frames or state.phase is not WanPhase.BLOCK:
        plan = rig.kernel.plan_step(state, Controls())
        assert isinstance(plan, WorkPlan)
        unit = StepUnit(plan, state, Controls(), pool.reserve(plan.writes))
        [result] = rig.kernel.run_step(StepBatch(rig.instance, (unit,)))
        state = result.state
    return state
