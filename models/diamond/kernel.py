"""The loop `world_model` of DIAMOND: one picture a chunk, one denoise call a unit.

The first call takes the controls; the last call of the world model commits. With an
upsampler its calls follow; the next picture does not depend on their result.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack

import torch
from torch import Tensor

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
from reverie.models.diamond.actions import QUALITY, action_of
from reverie.models.diamond.components import DiamondComponents
from reverie.models.diamond.config import SamplerConfig
from reverie.models.diamond.sampler import SamplingState, advance, calls_left
from reverie.models.diamond.starts import enlarged
from reverie.models.diamond.state import DiamondPhase, DiamondState

Result = StepResult[DiamondState]


class DiamondKernel(LoopKernel[DiamondState]):
    """The world model of a game, driven by keys and mouse."""

    def __init__(
        self, spec: LoopSpec, components: DiamondComponents, instance: ModelInstance
    ) -> None:
        self.spec = spec
        self._components, self._game, self._instance = components, components.game, instance

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> DiamondState:
        """Bind the seed, which selects the start."""
        starts, device = self._components.starts, instance.device
        start = starts[request.seed % len(starts)]
        return DiamondState(
            request.seed,
            start.pictures_PCHW.to(device).unbind(),
            start.actions.to(device).unbind(),
            start.shown_CHW.to(device),
            fine=request.parameters.get(QUALITY, 0) > 0,
        )

    def plan_step(self, state: DiamondState, controls: Controls) -> WorkPlan | Idle:
        """Plan the next unit, in the order of `DiamondPhase`."""
        match state.phase:
            case DiamondPhase.BEGIN:
                return self._plan("begin", streams=("video",), commits=True, shows=True)
            case DiamondPhase.FRAME:
                begun = replace(
                    state, drawing=SamplingState(state.shown_CHW), fine=_fine(state, controls)
                )
                return self._plan("denoise", takes_controls=True, commits=self._left(begun) == 1)
            case DiamondPhase.DENOISE:
                return self._plan("denoise", commits=self._left(state) == 1)
            case DiamondPhase.UPSAMPLE:
                return self._plan("upsample")
            case DiamondPhase.SHOW:
                return self._plan("show", streams=("video",), shows=True)

    def run_step(self, batch: StepBatch[DiamondState]) -> Sequence[Result]:
        """Run the units one after another."""
        with torch.no_grad():
            return [self._run(unit) for unit in batch.units]

    def _sampler(self, state: DiamondState) -> SamplerConfig:
        return (self._game.fine if state.fine else None) or self._game.sampler

    def _left(self, state: DiamondState) -> int:
        assert state.drawing is not None, "a picture is in progress"
        return calls_left(state.drawing, self._sampler(state))

    def _run(self, unit: StepUnit[DiamondState]) -> Result:
        match unit.plan.kind:
            case "denoise":
                return self._denoise(unit.state, unit.controls)
            case "upsample":
                return self._upsample(unit.state)
            case _:
                return self._show(unit.state)

    def _denoise(self, state: DiamondState, controls: Controls) -> Result:
        if state.phase is DiamondPhase.FRAME:
            action = action_of(controls, self._game).to(self._instance.device)
            state = replace(
                state,
                phase=DiamondPhase.DENOISE,
                fine=_fine(state, controls),
                actions=(*state.actions[:-1], action),
                drawing=SamplingState(self._noise(state, "picture", 0, state.pictures[-1].shape)),
            )
        assert state.drawing is not None, "a picture is in progress"
        sampler = self._sampler(state)
        drawing = advance(
            state.drawing,
            sampler,
            partial(self._world, state),
            partial(self._churn, state, "churn", state.drawing.x_CHW.shape),
        )
        if not drawing.done(sampler):
            return StepResult(replace(state, drawing=drawing), checks=(drawing.x_CHW,))
        made = drawing.x_CHW
        large = self._components.upsampler is not None
        state = replace(
            state,
            phase=DiamondPhase.UPSAMPLE if large else DiamondPhase.SHOW,
            frame=state.frame + 1,
            pictures=(*state.pictures[1:], made),
            # The newest action stays until the next picture begins, which replaces it.
            actions=(*state.actions[1:], state.actions[-1]),
            drawing=None,
            enlarging=None,
            shown_CHW=state.shown_CHW if large else made,
        )
        return StepResult(state, checks=(made,))

    def _world(self, state: DiamondState, x_CHW: Tensor, sigma: float) -> Tensor:
        """Denoise; for networks trained with a noisy past, add more noise with every step."""
        assert state.drawing is not None, "a picture is in progress"
        level = self._sampler(state).past_sigma
        past = torch.stack(state.pictures)[None]
        for step in range(state.drawing.step + 1 if level else 0):
            past = past + level * self._noise(state, "past", step, past.shape)
        actions = torch.stack(state.actions)[None]
        clean: Tensor = self._components.world(x_CHW[None], sigma, past, actions, level)
        return clean[0]

    def _upsample(self, state: DiamondState) -> Result:
        config = (self._game.fine_upsampling if state.fine else None) or (self._game.upsampling)
        assert config is not None, "an upsampler has a sampler"
        drawing = state.enlarging
        if drawing is None:
            drawing = SamplingState(self._noise(state, "large", 0, state.shown_CHW.shape))
        drawing = advance(
            drawing,
            config,
            partial(self._large, state),
            partial(self._churn, state, "large churn", drawing.x_CHW.shape),
        )
        if not drawing.done(config):
            return StepResult(replace(state, enlarging=drawing), checks=(drawing.x_CHW,))
        state = replace(state, phase=DiamondPhase.SHOW, enlarging=None, shown_CHW=drawing.x_CHW)
        return StepResult(state, checks=(drawing.x_CHW,))

    def _large(self, state: DiamondState, x_CHW: Tensor, sigma: float) -> Tensor:
        assert self._components.upsampler is not None, "there is an upsampler"
        small = enlarged(state.pictures[-1], self._game.factor)
        seen = torch.stack((state.shown_CHW, small))[None]
        clean: Tensor = self._components.upsampler(x_CHW[None], sigma, seen, None)
        return clean[0]

    def _churn(self, state: DiamondState, stream: str, shape: tuple[int, ...], step: int) -> Tensor:
        return self._noise(state, stream, step, shape)

    def _noise(self, state: DiamondState, stream: str, step: int, shape: tuple[int, ...]) -> Tensor:
        drawn = self._components.draw(state.seed, f"{stream} {step}", state.frame, tuple(shape))
        return drawn.to(self._instance.device)

    def _show(self, state: DiamondState) -> Result:
        frames = (state.shown_CHW / 2 + 0.5).clamp(0, 1).permute(1, 2, 0)[None]
        return StepResult(replace(state, phase=DiamondPhase.FRAME), (FrameOutput("video", frames),))

    def _plan(self, kind: str, **options: Unpack[PlanOptions]) -> WorkPlan:
        return WorkPlan.of(self._instance, self.spec, kind, **options)


def _fine(state: DiamondState, controls: Controls) -> bool:
    return controls.parameters.get(QUALITY, state.fine) > 0
