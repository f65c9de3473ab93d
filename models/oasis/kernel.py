"""The loop `world_model` of Oasis: one frame a chunk, one denoise call a unit.

First the start picture is encoded. Each frame consists of denoise calls (the first takes the
controls, the last commits), a decode that puts it out, and a context pass that adds it to the past.
While the window fills, that pass computes only the newest frame. Once frames have left the window,
it recomputes all that remain, because the keys and values of a frame depend on those before it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import torch
from torch import Tensor

from reverie.models.contract.blocks import BlockId
from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import (
    FrameOutput,
    Idle,
    LoopKernel,
    LoopRequest,
    PlanOptions,
    StepBatch,
    StepResult,
    StepUnit,
    WorkPlan,
)
from reverie.models.contract.spec import LoopSpec
from reverie.models.oasis.components import OasisComponents
from reverie.models.oasis.config import ACTIONS, CAMERA
from reverie.models.oasis.guidance import SPACE, WEIGHT, guided_velocity, policy_of
from reverie.models.oasis.sampler import CONTEXT_LEVEL, LEVELS, NOISE_LIMIT
from reverie.models.oasis.state import ContextFrame, OasisPhase, OasisState
from reverie.models.services.guidance.policies import GuidedCall

CONTROL = "play"
Result = StepResult[OasisState]


class OasisKernel(LoopKernel[OasisState]):
    """The world model of Oasis, driven by keys and camera."""

    def __init__(
        self, spec: LoopSpec, components: OasisComponents, instance: ModelInstance
    ) -> None:
        self.spec = spec
        self._components, self._instance = components, instance
        self._past = (
            components.transformer.config.window - 1
        )  # frames that the one in progress attends to

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> OasisState:
        """Bind seed and parameters."""
        return OasisState(request.seed, action_guidance=request.parameters.get(WEIGHT, 1.0))

    def plan_step(self, state: OasisState, controls: Controls) -> WorkPlan | Idle:
        """Plan the next unit, in the order of `OasisPhase`."""
        last = state.step + 1 == len(self._components.ddim.levels)
        match state.phase:
            case OasisPhase.BEGIN:
                return self._plan(state, "encode", commits=True)
            case OasisPhase.DECODE:
                return self._plan(state, "decode", streams=("video",), shows=True)
            case OasisPhase.CONTEXT:
                writes = len(state.window) if state.slid else 1
                return self._plan(state, "context", writes=writes)
            case OasisPhase.FRAME:
                return self._plan(state, "denoise", takes_controls=True, commits=last)
            case OasisPhase.DENOISE:
                return self._plan(state, "denoise", commits=last)

    def run_step(self, batch: StepBatch[OasisState]) -> Sequence[Result]:
        """Run the units one after another."""
        with torch.no_grad():
            return [self._run(unit) for unit in batch.units]

    def _run(self, unit: StepUnit[OasisState]) -> Result:
        match unit.plan.kind:
            case "encode":
                return self._encode(unit.state)
            case "decode":
                return self._decode(unit.state)
            case "context":
                return self._context(unit.state, unit.blocks)
            case _:
                return self._denoise(unit.state, unit.controls)

    def _encode(self, state: OasisState) -> Result:
        picture = self._components.starts[state.seed % len(self._components.starts)]
        latents = self._components.vae.encode(picture[None].to(self._instance.device))[0]
        first = ContextFrame(latents, torch.zeros(len(ACTIONS), device=latents.device))
        return StepResult(self._made(state, first), checks=(latents,))

    def _made(self, state: OasisState, frame: ContextFrame) -> OasisState:
        window = (*state.window, frame)
        return replace(
            state,
            phase=OasisPhase.DECODE,
            frame=state.frame + 1,
            step=0,
            point_Zhw=None,
            window=window[-self._past :],
            slid=len(window) > self._past,
        )

    def _decode(self, state: OasisState) -> Result:
        pictures_BCHW = self._components.vae.decode(state.window[-1].latents_Zhw[None])
        frames = pictures_BCHW.clamp(0, 1).permute(0, 2, 3, 1)
        state = replace(state, phase=OasisPhase.CONTEXT)
        return StepResult(state, (FrameOutput("video", frames),))

    def _context(self, state: OasisState, reserved: tuple[BlockId, ...]) -> Result:
        pool = self._instance.blocks
        assert pool is not None, "Oasis keeps a cache"
        due = state.window[-len(reserved) :]
        kept = () if state.slid else state.blocks
        past = pool.gather(kept)[None] if kept else None
        levels = torch.full((1, len(due)), CONTEXT_LEVEL, device=self._instance.device)
        output = self._components.transformer(
            torch.stack([frame.latents_Zhw for frame in due])[None],
            levels,
            torch.stack([frame.action_E for frame in due])[None],
            past,
        )
        for block, cached in zip(reserved, output.cached_BF2LNAd[0], strict=True):
            pool.view(block).copy_(cached)
        state = replace(state, phase=OasisPhase.FRAME, blocks=(*kept, *reserved))
        return StepResult(state, checks=(output.cached_BF2LNAd,))

    def _denoise(self, state: OasisState, controls: Controls) -> Result:
        if state.phase is OasisPhase.FRAME:
            state = self._begun(state, controls)
        assert state.point_Zhw is not None, "a frame begins with noise"
        assert state.action_E is not None, "and with an action"
        pool, ddim = self._instance.blocks, self._components.ddim
        assert pool is not None, "Oasis keeps a cache"
        level = ddim.levels[state.step]
        call = GuidedCall(level / LEVELS, self._instance.weights_version, "", state.frame, SPACE)
        velocity = guided_velocity(
            self._components.transformer,
            state.point_Zhw,
            level,
            state.action_E,
            pool.gather(state.blocks),
            policy_of(state.action_guidance),
            call,
        )
        point = ddim.step(state.point_Zhw, velocity, state.step)
        if state.step + 1 == len(ddim.levels):
            made = self._made(state, ContextFrame(point, state.action_E))
            return StepResult(made, checks=(point,))
        state = replace(state, phase=OasisPhase.DENOISE, step=state.step + 1, point_Zhw=point)
        return StepResult(state, checks=(point,))

    def _begun(self, state: OasisState, controls: Controls) -> OasisState:
        shape = tuple(state.window[-1].latents_Zhw.shape)
        noise = self._components.draw(state.seed, "frame", state.frame, shape)
        device = self._instance.device
        return replace(
            state,
            point_Zhw=noise.clamp(-NOISE_LIMIT, NOISE_LIMIT).to(device),
            action_E=action_row(controls).to(device),
            action_guidance=controls.parameters.get(WEIGHT, state.action_guidance),
        )

    def _plan(self, state: OasisState, kind: str, **options: Unpack[PlanOptions]) -> WorkPlan:
        shape = (len(state.blocks), state.step, options.get("writes", 0))
        return WorkPlan.of(self._instance, self.spec, kind, shape, **options)


def action_row(controls: Controls) -> Tensor:
    """Return the numbers of one step: keys that are held or were tapped, and the camera."""
    row = torch.zeros(len(ACTIONS))
    if CONTROL in controls.keys:
        keys = controls.keys[CONTROL]
        pressed = {edge.key for edge in keys.edges if edge.down} | set(keys.held)
        for key in pressed:
            row[ACTIONS.index(key)] = 1
    for axis in CAMERA:
        row[ACTIONS.index(axis)] = max(-1.0, min(1.0, controls.axes.get(axis, 0.0)))
    return row
