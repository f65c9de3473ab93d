"""The units of the world model: denoise steps and context passes.

Shapes: Z latent channels on a grid h x w.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import Tensor

from reverie.models.contract.blocks import BlockId
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import StepResult, StepUnit
from reverie.models.pocket.network.sampler import (
    CONTEXT_LEVEL,
    TEMPERATURE,
    frame_noise,
    next_point,
    noise_levels,
)
from reverie.models.pocket.network.world_model import WorldModel
from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.simulator.walker import stance_of
from reverie.models.pocket.world.actions import with_controls
from reverie.models.pocket.world.calls import CallRow, PocketGuidedRow, guided_rows, remembered
from reverie.models.pocket.world.past_rows import PocketPastRow, read_rows
from reverie.models.pocket.world.prompts import PocketPrompts
from reverie.models.pocket.world.state import PocketPhase, PocketState
from reverie.models.services.guidance.policies import CFGPolicy, GuidedCall

Unit = StepUnit[PocketState]
Result = StepResult[PocketState]


class PocketFrameUnits:
    """Run units of sessions on the world model, together.

    Args:
        world: the network.
        prompts: embeds the empty prompt, for guidance.
        instance: what they are part of.
        policy: the guidance policy of a session, by its scale.
    """

    def __init__(
        self,
        world: WorldModel,
        prompts: PocketPrompts,
        instance: ModelInstance,
        policy: Callable[[float], CFGPolicy],
    ) -> None:
        self._world = world
        self._prompts = prompts
        self._instance = instance
        self._policy = policy

    def denoise(self, units: Sequence[Unit]) -> list[Result]:
        """Run one denoise step of each unit's frame."""
        begun = [
            with_controls(unit.state, unit.controls)
            if unit.state.phase is PocketPhase.CHUNK
            else unit.state
            for unit in units
        ]
        states = self._with_past(begun)
        rows = [self._denoise_row(state) for state in states]
        results = []
        for state, row, guided in zip(states, rows, guided_rows(self._world, rows), strict=True):
            step = state.step + 1
            next_level = (*noise_levels(state.steps, state.strength), 0.0)[step]
            point_Zhw = next_point(row.row.point_Zhw, guided.prediction, row.row.level, next_level)
            phase = PocketPhase.DECODE if step == state.steps else PocketPhase.DENOISE
            next_state = replace(
                state, point_Zhw=point_Zhw, step=step, phase=phase, delta=guided.delta
            )
            results.append(StepResult(next_state, checks=(point_Zhw,)))
        return results

    def _denoise_row(self, state: PocketState) -> PocketGuidedRow:
        assert state.text_T is not None, "the prompt is read before the first frame"
        level = noise_levels(state.steps, state.strength)[state.step]
        row = CallRow(
            point_Zhw=self._noise(state) if state.point_Zhw is None else state.point_Zhw,
            level=level,
            previous_Zhw=state.window[-1].clean_Zhw,
            stance=state.stance,
            text_T=state.text_T,
            past=state.past,
        )
        policy = self._policy(state.guidance)
        call = GuidedCall(level, self._instance.weights_version, state.prompt, state.frame)
        idle = stance_of(Action.WAIT, state.facing)
        return PocketGuidedRow(row, self._prompts.empty, idle, policy, call, state.delta)

    def context(self, units: Sequence[Unit]) -> list[Result]:
        """Write the oldest frame of each window that has no cache block yet."""
        pool = self._instance.blocks
        assert pool is not None, "pocket keeps a cache"
        pasts = self._read([unit.state for unit in units])
        rows = []
        for unit, past in zip(units, pasts, strict=True):
            frame = unit.state.window[len(unit.state.blocks)]
            rows.append(
                CallRow(
                    frame.clean_Zhw,
                    CONTEXT_LEVEL,
                    frame.previous_Zhw,
                    frame.stance,
                    frame.text_T,
                    past,
                )
            )
        kept_B2LANd = remembered(self._world, rows)
        results = []
        for unit, kept_2LANd in zip(units, kept_B2LANd, strict=True):
            block = pool.view(unit.blocks[0])
            block.copy_(kept_2LANd)
            state = self._after_context(unit.state, (*unit.state.blocks, *unit.blocks))
            # A value that is not finite in one layer is not finite in the last one.
            results.append(StepResult(state, checks=(block[:, -1],)))
        return results

    def _after_context(self, state: PocketState, blocks: tuple[BlockId, ...]) -> PocketState:
        phase = PocketPhase.CHUNK if len(blocks) == len(state.window) else PocketPhase.CONTEXT
        dropped = max(0, len(blocks) - (self._world.config.window - 1))
        return replace(state, blocks=blocks[dropped:], window=state.window[dropped:], phase=phase)

    def _with_past(self, states: Sequence[PocketState]) -> list[PocketState]:
        """Read the windows of the sessions whose frame begins."""
        begun = [state for state in states if state.past is None]
        read = iter(self._read(begun))
        return [replace(s, past=next(read)) if s.past is None else s for s in states]

    def _read(self, states: Sequence[PocketState]) -> Sequence[PocketPastRow | None]:
        if not states or not states[0].blocks:
            return [None] * len(states)
        assert self._instance.blocks is not None, "pocket keeps a cache"
        windows = [state.blocks for state in states]
        return read_rows(self._world, self._instance.blocks, windows)

    def _noise(self, state: PocketState) -> Tensor:
        shape = tuple(state.window[-1].clean_Zhw.shape)
        noise = frame_noise(state.seed, state.frame, shape)
        return TEMPERATURE * noise.to(self._instance.device)
