"""The units that call the transformer: denoise, write the context, recache.

Shapes: B sessions, F latent frames, Z channels on a grid h x w.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from reverie.models.contract.blocks import BlockId
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import StepResult, StepUnit
from reverie.models.services.guidance.policies import GuidedCall
from reverie.models.services.guidance.select import GuidanceFactory
from reverie.models.wan.components import WanComponents
from reverie.models.wan.controls import taken
from reverie.models.wan.guidance import (
    SPACE,
    WanGuidedRow,
    WanRow,
    guided_flows,
    policy_of,
)
from reverie.models.wan.network.features import FIRST_GROUP, GROUP
from reverie.models.wan.network.schedule import FlowSchedule
from reverie.models.wan.prompts import EmptyPrompt
from reverie.models.wan.state import LatentFrame, PendingLatents, WanPhase, WanState
from reverie.models.wan.transformer_calls import TransformerCalls, point_of, row_of
from reverie.models.wan.window import block_at, due_block, kept, unmoved

Unit = StepUnit[WanState]
Result = StepResult[WanState]


class WanTransformerUnits:
    """Runs units of one kind on the transformer, together."""

    def __init__(
        self, components: WanComponents, instance: ModelInstance, policy_for: GuidanceFactory
    ) -> None:
        assert instance.blocks is not None, "causal Wan keeps a cache"
        self._components, self._instance = components, instance
        self._policy_for, self._empty = policy_for, EmptyPrompt(components, instance)
        self._calls = TransformerCalls(components, instance.blocks)
        self._causal = components.causal
        self._schedule = FlowSchedule.of(components.causal.shift)
        self.timesteps = self._schedule.warp(components.causal.levels)

    def repainting(self, strength: float) -> tuple[float, ...]:
        """Return the timesteps of a block that repaints pictures."""
        return self._schedule.from_strength(self._causal.levels, strength)

    def denoise(self, units: Sequence[Unit]) -> list[Result]:
        """Run one denoise call of each unit's block."""
        states = self._calls.look_back(
            [self._begun(replace(taken(unit.state, unit.controls), turned=False)) for unit in units]
        )
        rows = [self._guided(state) for state in states]
        flows = guided_flows(lambda asked: self._calls.run(asked)[0].unbind(0), rows)
        return [
            self._denoised(replace(state, delta=flow.delta), row.row, flow.prediction)
            for state, row, flow in zip(states, rows, flows, strict=True)
        ]

    def context(self, units: Sequence[Unit]) -> list[Result]:
        """Write keys and values of the oldest block of each session that is not written."""
        blocks = [
            due_block(unit.state.fresh, unit.state.clip_continues, self._causal) for unit in units
        ]
        states = self._calls.look_back(
            [
                replace(unit.state, frame=block[0].number, point_FZhw=_stacked(block))
                for unit, block in zip(units, blocks, strict=True)
            ]
        )
        level = self._causal.context_level
        _, cached = self._calls.run(
            [row_of(state, point_of(state), level, state.frame) for state in states]
        )
        return [
            self._written(state, block, unit.blocks, own)
            for state, block, unit, own in zip(states, blocks, units, cached, strict=True)
        ]

    def recache(self, units: Sequence[Unit]) -> list[Result]:
        """Compute each window's keys and values under the new prompt, in one call.

        When the adapters have changed, the sink is recomputed as well.
        """
        held = unmoved(units[0].state.frame, units[0].state.window, self._causal)
        if held and units[0].state.stale:
            self._write_sinks(units, held)
        kept = [_sink_blocks(unit, held) for unit in units]
        sinks = self._calls.read(kept)
        rows = [
            row_of(
                replace(unit.state, past=sink),
                _stacked(unit.state.window),
                self._causal.context_level,
                unit.state.window[0].number,
            )
            for unit, sink in zip(units, sinks, strict=True)
        ]
        _, cached = self._calls.run(rows, held)
        results = []
        for unit, sink_blocks, own in zip(units, kept, cached, strict=True):
            blocks = unit.blocks[len(unit.blocks) - (len(own) - held) :]
            self._calls.write(blocks, own[held:])
            state = self._recached(unit.state, held, (*sink_blocks, *blocks))
            results.append(StepResult(state, checks=(own,)))
        return results

    def _write_sinks(self, units: Sequence[Unit], held: int) -> None:
        """Compute the keys and values of the sink's frames, which attend only to each other."""
        rows = [
            row_of(
                replace(unit.state, past=None),
                _stacked(unit.state.sink[:held]),
                self._causal.context_level,
                unit.state.sink[0].number,
            )
            for unit in units
        ]
        _, cached = self._calls.run(rows)
        for unit, own in zip(units, cached, strict=True):
            self._calls.write(unit.blocks[:held], own)

    def committed(self, state: WanState, clean: Sequence[Tensor]) -> WanState:
        """Make a block final."""
        made = tuple(
            LatentFrame(state.frame + index, state.frame, clean_Zhw)
            for index, clean_Zhw in enumerate(clean)
        )
        shown = [GROUP] * len(made)
        if state.decoder is None:
            shown[0] = FIRST_GROUP
        return replace(
            state,
            phase=WanPhase.DECODE,
            step=0,
            timesteps=(),
            restarted=False,
            point_FZhw=None,
            delta=None,
            past=None,  # states after a chunk are kept, so they refer to blocks and not to copies
            source=(),
            waiting=tuple(
                PendingLatents(frame.clean_Zhw, count)
                for frame, count in zip(made, shown, strict=True)
            ),
            fresh=made,
        )

    def _begun(self, state: WanState) -> WanState:
        """Return the state with the noise that its block starts from."""
        if state.point_FZhw is not None:
            return state
        frames = len(state.source) or block_at(state.frame, self._causal)
        shape = (frames, self._components.transformer.config.in_dim, *self._components.grid)
        number = state.offset + state.frame
        noise = self._components.noise.first(state.seed, number, shape).to(self._instance.device)
        if not state.source:
            return replace(state, timesteps=self.timesteps, point_FZhw=noise)
        source = torch.stack(state.source)
        point = self._schedule.noised(source, noise, state.timesteps[0])
        return replace(state, point_FZhw=point)

    def _guided(self, state: WanState) -> WanGuidedRow:
        timestep = state.timesteps[state.step]
        call = GuidedCall(
            self._schedule.sigma(timestep),
            self._instance.weights_version,
            repr((state.prompt, state.mix)),
            state.frame,
            SPACE,
        )
        row = row_of(state, point_of(state), timestep, state.frame)
        policy = policy_of(state, self._policy_for)
        return WanGuidedRow(row, partial(self._empty.read, state.mix), policy, call, state.delta)

    def _denoised(self, state: WanState, row: WanRow, flow_FZhw: Tensor) -> Result:
        clean = self._schedule.clean(row.x_FZhw, flow_FZhw, row.timestep)
        step = state.step + 1
        if step == len(state.timesteps):
            return StepResult(self.committed(state, clean.unbind(0)), checks=(clean,))
        shape = tuple(clean.shape)
        number = state.offset + state.frame
        noise = self._components.noise.again(state.seed, number, step, shape).to(clean.device)
        point = self._schedule.noised(clean, noise, state.timesteps[step])
        state = replace(state, phase=WanPhase.DENOISE, step=step, point_FZhw=point)
        return StepResult(state, checks=(point,))

    def _written(
        self,
        state: WanState,
        block: tuple[LatentFrame, ...],
        reserved: tuple[BlockId, ...],
        own_F2LNAd: Tensor,
    ) -> Result:
        self._calls.write(reserved, own_F2LNAd)
        rest = state.fresh[len(block) :]
        more = due_block(rest, state.clip_continues, self._causal)
        state = replace(
            state,
            phase=WanPhase.CONTEXT if more else WanPhase.BLOCK,
            frame=block[-1].number + 1,
            point_FZhw=None,
            past=None,
            window=(*state.window, *block)[-self._causal.local :],
            sink=(*state.sink, *block)[: self._causal.sink],
            fresh=rest,
            blocks=kept(state.blocks, reserved, self._causal),
        )
        return StepResult(state, checks=(own_F2LNAd,))

    def _recached(self, state: WanState, held: int, blocks: tuple[BlockId, ...]) -> WanState:
        return replace(
            state,
            phase=WanPhase.BLOCK if state.point_FZhw is None else WanPhase.DENOISE,
            past=None,
            sink=state.sink if held else state.window[: self._causal.sink],
            blocks=blocks,
            stale=False,
        )


def _sink_blocks(unit: Unit, held: int) -> tuple[BlockId, ...]:
    """Return the sink's blocks, which the rest of the window attends to."""
    return unit.blocks[:held] if unit.state.stale else unit.state.blocks[:held]


def _stacked(frames: Sequence[LatentFrame]) -> Tensor:
    return torch.stack([frame.clean_Zhw for frame in frames])
