"""The work units of causal Wan: read a prompt, denoise, decode, write the context, recache."""

from dataclasses import replace

import torch
from torch import Tensor

from reverie.models.blocks import BlockId
from reverie.models.cache import CacheKey
from reverie.models.controls import Controls
from reverie.models.instance import ModelInstance
from reverie.models.loop import FrameOutput, StepResult, StepUnit
from reverie.models.wan.block import KeysAndValues
from reverie.models.wan.parts import WanParts
from reverie.models.wan.schedule import FlowSchedule
from reverie.models.wan.state import OnPrompt, Phase, WanState
from reverie.models.wan.transformer import layers_of
from reverie.models.wan.window import kept, seen_past

Result = StepResult[WanState]


class Units:
    """Runs one planned unit of one session."""

    def __init__(self, parts: WanParts, instance: ModelInstance) -> None:
        self._parts, self._instance = parts, instance
        self._causal = parts.causal
        self._schedule = FlowSchedule.of(parts.causal.shift)
        self.timesteps = self._schedule.warp(parts.causal.levels)

    @torch.no_grad()
    def run(self, unit: StepUnit[WanState]) -> Result:
        """Run the unit that the plan names."""
        state, controls = unit.state, unit.controls
        match unit.plan.kind:
            case "encode_text":
                return self._encode_text(state, controls)
            case "warm_decoder":
                return self._warm_decoder(state)
            case "denoise":
                return self._denoise(state, controls)
            case "recache":
                return self._recache(state, unit.blocks)
            case "decode":
                return self._decode(state)
            case _:
                return self._context(state, unit.blocks)

    def next_given(self, state: WanState) -> tuple[Tensor, ...]:
        """Return the given latents that the next context pass writes."""
        return state.given[: self._block_at(state)]

    def unmoved(self, state: WanState) -> int:
        """Return how many of the window's first frames keep their cache blocks in a recache.

        The sink, once the video has grown out of the window; before, it is computed anew.
        """
        slid = state.frame > len(state.window)
        return self._causal.sink if slid and self._causal.global_sink else 0

    def _block_at(self, state: WanState) -> int:
        alone = self._causal.first_alone and state.frame == 0
        return 1 if alone else self._causal.block

    def _encode_text(self, state: WanState, controls: Controls) -> Result:
        prompt = state.prompt if controls.prompt is None else controls.prompt
        rows = self._rows(prompt)
        text = self._parts.transformer.read_prompt(rows[None])
        begun = state.phase is Phase.BEGIN
        state = _take(replace(state, prompt=prompt, text=text, turned=not begun), controls)
        again = self._causal.recache and bool(state.window)
        if begun:
            phase = Phase.GIVEN if state.given else Phase.BLOCK
        elif again:
            phase = Phase.RECACHE
        else:
            phase = state.phase
        restarts = state.on_prompt is OnPrompt.RESTART and not state.restarted
        if state.phase is Phase.DENOISE and restarts:
            state = replace(state, step=0, point_FZhw=None, restarted=True)
            phase = phase if again else Phase.BLOCK
        return StepResult(replace(state, phase=phase), checks=(rows,))

    def _rows(self, prompt: str) -> Tensor:
        key = CacheKey(
            model=self._instance.spec.name,
            component="text",
            weights_version=self._instance.weights_version,
            inputs=(prompt,),
            precision=str(self._instance.dtype),
        )
        rows = self._instance.encodings.get(key)
        if rows is None:
            rows = self._parts.text.encode(prompt)
            self._instance.encodings.put(key, rows)
        return rows

    def _denoise(self, state: WanState, controls: Controls) -> Result:
        state = replace(_take(state, controls), turned=False)
        if state.step == 0:
            state = self._begin_block(state)
        assert state.point_FZhw is not None, "a block begins with noise"
        timestep, last = self.timesteps[state.step], state.step + 1 == len(self.timesteps)
        flow, _ = self._forward(state, state.point_FZhw, timestep)
        clean = self._schedule.clean(state.point_FZhw, flow, timestep)
        if last:
            return StepResult(self._committed(state, clean), checks=(clean,))
        noise = self._parts.noise.again(
            state.seed, state.frame, state.step + 1, tuple(clean.shape)
        ).to(clean.device)
        point = self._schedule.noised(clean, noise, self.timesteps[state.step + 1])
        state = replace(state, phase=Phase.DENOISE, step=state.step + 1, point_FZhw=point)
        return StepResult(state, checks=(point,))

    def _begin_block(self, state: WanState) -> WanState:
        frames = self._block_at(state)
        shape = (frames, self._parts.transformer.config.in_dim, *self._parts.grid)
        noise = self._parts.noise.first(state.seed, state.frame, shape).to(self._instance.device)
        return replace(self._looking_back(state, frames), point_FZhw=noise)

    def _looking_back(self, state: WanState, frames: int) -> WanState:
        """Gather what a call of `frames` frames sees of the cache."""
        seen = seen_past(state.blocks, frames, self._causal)
        return replace(state, seen=seen, past=self._read(seen))

    def _read(self, blocks: tuple[BlockId, ...]) -> tuple[KeysAndValues, ...] | None:
        assert self._instance.blocks is not None, "causal Wan keeps a cache"
        return layers_of(self._instance.blocks.gather(blocks)[None]) if blocks else None

    def _committed(self, state: WanState, clean_FZhw: Tensor) -> WanState:
        made = tuple(clean_FZhw.unbind(0))
        return replace(
            state,
            phase=Phase.DECODE,
            step=0,
            restarted=False,
            point_FZhw=None,
            past=None,  # states after a chunk are kept: they refer to blocks, not to copies
            seen=(),
            window=(*state.window, *made)[-self._causal.local :],
            waiting=made,
            fresh=made,
        )

    def _decode(self, state: WanState) -> Result:
        """Decode one latent frame; the last of the block puts all its pictures out together."""
        pictures, cache = self._parts.decoder.decode(state.waiting[0][None], state.decoder)
        made, waiting = (*state.made, pictures[0] / 2 + 0.5), state.waiting[1:]
        if waiting:
            return StepResult(replace(state, waiting=waiting, decoder=cache, made=made))
        state = replace(state, phase=Phase.CONTEXT, waiting=(), decoder=cache, made=())
        return StepResult(state, outputs=(FrameOutput("video", torch.cat(made)),))

    def _warm_decoder(self, state: WanState) -> Result:
        _, cache = self._parts.decoder.decode(state.waiting[0][None], state.decoder)
        return StepResult(replace(state, waiting=state.waiting[1:], decoder=cache))

    def _context(self, state: WanState, reserved: tuple[BlockId, ...]) -> Result:
        """Write keys and values of frames that are final: of a block, or of given ones."""
        given = self.next_given(state) if state.phase is Phase.GIVEN else ()
        frames = torch.stack(given or state.fresh)
        state = self._looking_back(state, len(frames))
        _, cached = self._forward(state, frames, self._causal.context_level)
        self._write(reserved, cached)
        rest = state.given[len(given) :]
        window = (*state.window, *given)[-self._causal.local :]
        state = replace(
            state,
            phase=Phase.GIVEN if rest else Phase.BLOCK,
            frame=state.frame + len(frames),
            past=None,
            seen=(),
            window=window,
            given=rest,
            fresh=(),
            blocks=kept(state.blocks, reserved, self._causal),
        )
        return StepResult(state, checks=(cached,))

    def _recache(self, state: WanState, reserved: tuple[BlockId, ...]) -> Result:
        """Compute the window's keys and values under the new prompt, in one call."""
        frames, unmoved = torch.stack(state.window), self.unmoved(state)
        sink = state.blocks[:unmoved]
        looking = replace(state, past=self._read(sink), seen=sink, frame=state.frame - len(frames))
        _, cached = self._forward(looking, frames, self._causal.context_level, unmoved)
        self._write(reserved, cached[unmoved:])
        phase = Phase.DENOISE if state.point_FZhw is not None else Phase.BLOCK
        state = replace(state, phase=phase, blocks=(*sink, *reserved), past=None, seen=())
        if phase is Phase.DENOISE:
            assert state.point_FZhw is not None, "checked above"
            state = self._looking_back(state, len(state.point_FZhw))
        return StepResult(state, checks=(cached,))

    def _write(self, blocks: tuple[BlockId, ...], frames_F2LNAd: Tensor) -> None:
        assert self._instance.blocks is not None, "causal Wan keeps a cache"
        for block, frame in zip(blocks, frames_F2LNAd, strict=True):
            self._instance.blocks.view(block).copy_(frame)

    def _forward(
        self, state: WanState, x_FZhw: Tensor, timestep: float, mute: int = 0
    ) -> tuple[Tensor, Tensor]:
        """Return the flow [F, Z, h, w] and what the cache keeps, [F, 2, L, N, A, d]."""
        assert state.text is not None, "the prompt is read first"
        levels = torch.full((1, len(x_FZhw)), timestep, device=x_FZhw.device)
        output = self._parts.transformer(
            x_FZhw[None], levels, state.text, state.past, (state.frame,), mute
        )
        return output.flow_BFZhw[0].float(), output.kv_BFLNAd[0]


def _take(state: WanState, controls: Controls) -> WanState:
    wish = controls.parameters.get("on_prompt")
    return state if wish is None else replace(state, on_prompt=OnPrompt(int(wish)))
