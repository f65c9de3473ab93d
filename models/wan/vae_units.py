"""The units that call the VAE: latents to pictures and back, a latent frame at a time.

Units of a kind run together when the features of their sessions have equal shapes.

Shapes: B sessions, F pictures of H x W pixels, Z latent channels on a grid h x w.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from reverie.models.contract.controls import MediaInput
from reverie.models.contract.loop import FrameOutput, StepResult, StepUnit
from reverie.models.wan.components import WanComponents
from reverie.models.wan.controls import taken
from reverie.models.wan.input_frames import (
    CAMERA_PICTURES,
    next_group,
    pictures_of,
    pixels_of,
    resample,
)
from reverie.models.wan.network.features import FeatureCache, split_caches, stack_caches
from reverie.models.wan.state import LatentFrame, PendingLatents, WanPhase, WanState
from reverie.models.wan.window import block_at, due_block, renumbered

Unit = StepUnit[WanState]
Result = StepResult[WanState]


class WanVaeUnits:
    """Runs units of one kind on the VAE, together."""

    def __init__(
        self,
        components: WanComponents,
        device: torch.device,
        repainting: Callable[[float], tuple[float, ...]],
        committed: Callable[[WanState, Sequence[Tensor]], WanState],
    ) -> None:
        """Bind the networks.

        Args:
            components: the networks.
            device: where they are.
            repainting: returns the timesteps of a block that repaints pictures, by strength.
            committed: makes latents final.
        """
        self._components, self._device = components, device
        self._causal = components.causal
        self._repainting = repainting
        self._committed = committed

    def warm(self, units: Sequence[Unit]) -> list[Result]:
        """Run the decoder on a latent frame of a history that is not shown again."""
        states = [unit.state for unit in units]
        _, caches = self._decoded([state.warm[0] for state in states], [s.decoder for s in states])
        results = []
        for state, cache in zip(states, caches, strict=True):
            rest = state.warm[1:]
            phase = WanPhase.WARM if rest else WanPhase.CONTEXT
            results.append(StepResult(replace(state, warm=rest, decoder=cache, phase=phase)))
        return results

    def decode(self, units: Sequence[Unit]) -> list[Result]:
        """Decode a latent frame; the last of a chunk puts out all its pictures together."""
        states = [unit.state for unit in units]
        pictures_BFHWC, caches = self._decoded(
            [state.waiting[0].clean_Zhw for state in states], [decoder_of(s) for s in states]
        )
        return [
            self._pictured(state, pictures_FHWC, cache)
            for state, pictures_FHWC, cache in zip(states, pictures_BFHWC, caches, strict=True)
        ]

    def encode_clip(self, units: Sequence[Unit]) -> list[Result]:
        """Add the next latent frame of a clip to the history, and show it."""
        states = [_abandoned(taken(unit.state, unit.controls)) for unit in units]
        groups = [_group(state) for state in states]
        latents, caches = self._encoded(groups, states)
        return [
            StepResult(self._shown(state, group, latent_Zhw, cache), checks=(latent_Zhw,))
            for state, group, latent_Zhw, cache in zip(states, groups, latents, caches, strict=True)
        ]

    def encode_camera(self, units: Sequence[Unit]) -> list[Result]:
        """Encode the next latent frame of a camera, for the block that repaints it."""
        states = [self._framed(taken(unit.state, unit.controls)) for unit in units]
        latents, caches = self._encoded([_group(state) for state in states], states)
        return [
            StepResult(self._seen(state, latent_Zhw, cache), checks=(latent_Zhw,))
            for state, latent_Zhw, cache in zip(states, latents, caches, strict=True)
        ]

    def _pictured(self, state: WanState, pictures_FHWC: Tensor, cache: FeatureCache) -> Result:
        shown = pictures_FHWC[: state.waiting[0].pictures] / 2 + 0.5
        made, waiting = (*state.made, shown), state.waiting[1:]
        state = replace(state, waiting=waiting, decoder=cache, made=made)
        if waiting:
            return StepResult(state)
        state = self._within_positions(replace(state, made=()))
        due = due_block(state.fresh, state.clip_continues, self._causal)
        state = replace(state, phase=WanPhase.CONTEXT if due else WanPhase.BLOCK)
        return StepResult(state, outputs=(FrameOutput("video", torch.cat(made)),))

    def _within_positions(self, state: WanState) -> WanState:
        """Renumber the frames of the window from 0 when positions run out; the cache is rebuilt.

        This happens when a chunk is put out, so that the old cache is not needed any more.
        """
        newest = state.fresh[-1]
        whole = newest.number + 1 - newest.block == block_at(newest.block, self._causal)
        if not whole or newest.number + 1 + self._causal.block <= self._causal.positions:
            return state
        window = (*state.window, *state.fresh)[-self._causal.local :]
        seen = {frame.number: frame for frame in (*state.sink, *window)}
        offset = state.offset + newest.number + 1 - len(seen)
        fresh = renumbered(tuple(seen.values()), self._causal)
        return replace(_anew(state), offset=offset, fresh=fresh)

    def _shown(
        self,
        state: WanState,
        group: Sequence[MediaInput],
        latent_Zhw: Tensor,
        cache: FeatureCache,
    ) -> WanState:
        begins, ends = state.encoder is None, group[-1].last
        if begins:
            state = _anew(state)
        rest = state.pictures[len(group) :]
        return replace(
            state,
            phase=WanPhase.ENCODE if next_group(rest, ends) else WanPhase.DECODE,
            pictures=rest,
            encoder=None if ends else cache,
            fresh=(*state.fresh, self._next_frame(state, latent_Zhw)),
            waiting=(*state.waiting, PendingLatents(latent_Zhw, len(group), begins)),
        )

    def _next_frame(self, state: WanState, latent_Zhw: Tensor) -> LatentFrame:
        if not state.fresh:
            return LatentFrame(state.frame, state.frame, latent_Zhw)
        newest = state.fresh[-1]
        number, block = newest.number + 1, newest.block
        if number - block == block_at(block, self._causal):
            block = number
        return LatentFrame(number, block, latent_Zhw)

    def _framed(self, state: WanState) -> WanState:
        """Return the state with as many pictures as its block needs, at the start of the block."""
        if state.phase is WanPhase.ENCODE:
            return state
        state = replace(state, turned=False)
        pictures = state.pictures[-CAMERA_PICTURES:]
        if not pictures:
            assert state.newest is not None, "the unit is planned for a picture"
            pictures = (state.newest,)
        if state.encoder is None:
            state = replace(_anew(state), decoder=None)
        due = pictures_of(block_at(state.frame, self._causal), state.encoder is None)
        chosen = tuple(replace(each, last=False) for each in resample(pictures, due))
        return replace(state, pictures=chosen, newest=pictures[-1])

    def _seen(self, state: WanState, latent_Zhw: Tensor, cache: FeatureCache) -> WanState:
        source = (*state.source, latent_Zhw)
        rest = state.pictures[len(_group(state)) :]
        state = replace(state, phase=WanPhase.ENCODE, pictures=rest, encoder=cache, source=source)
        if rest:
            return state
        timesteps = self._repainting(state.strength)
        if not timesteps:
            return self._committed(state, source)
        return replace(state, phase=WanPhase.DENOISE, timesteps=timesteps)

    def _decoded(
        self, latents: Sequence[Tensor], caches: Sequence[FeatureCache | None]
    ) -> tuple[Tensor, list[FeatureCache]]:
        pictures_BFHWC, cache = self._components.decoder.decode(
            torch.stack(list(latents)), stack_caches(caches)
        )
        return pictures_BFHWC, split_caches(cache, len(latents))

    def _encoded(
        self, groups: Sequence[Sequence[MediaInput]], states: Sequence[WanState]
    ) -> tuple[Tensor, list[FeatureCache]]:
        caches = [state.encoder for state in states]
        pixels = [
            pixels_of(group, cache is None) for group, cache in zip(groups, caches, strict=True)
        ]
        pictures_BFHWC = torch.stack(pixels).to(self._device).float() / 127.5 - 1
        latents_BZhw, cache = self._components.encoder.encode(pictures_BFHWC, stack_caches(caches))
        return latents_BZhw, split_caches(cache, len(groups))


def decoder_of(state: WanState) -> FeatureCache | None:
    """Return the features that the next decode continues from; None when it begins a video."""
    return None if state.waiting[0].begins else state.decoder


def _group(state: WanState) -> tuple[MediaInput, ...]:
    count = next_group(state.pictures, state.encoder is None)
    assert count, "the unit is planned for a whole group"
    return state.pictures[:count]


def _abandoned(state: WanState) -> WanState:
    """Drop the block in progress, because a clip replaces it."""
    return replace(
        state,
        step=0,
        timesteps=(),
        turned=False,
        restarted=False,
        point_FZhw=None,
        delta=None,
        past=None,
    )


def _anew(state: WanState) -> WanState:
    """Begin another video, without the history before it."""
    return replace(state, frame=0, offset=0, window=(), sink=(), fresh=(), blocks=())
