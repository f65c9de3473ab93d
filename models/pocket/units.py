"""The units of work of the world loop: each takes a state and returns the next one.

Shapes: Z latent channels on a grid h x w, T size of a text embedding; a batch of one session.
"""

from dataclasses import replace

import torch
from torch import Tensor

from reverie.models.blocks import BlockId
from reverie.models.cache import CacheKey
from reverie.models.controls import Controls
from reverie.models.instance import ModelInstance
from reverie.models.loop import FrameOutput, PromptNotes, StepResult, StepUnit
from reverie.models.pocket.biomes import Action, Biome, Hour
from reverie.models.pocket.captions import read_caption
from reverie.models.pocket.first_frame import first_frame, first_state
from reverie.models.pocket.nets import PocketNets
from reverie.models.pocket.reading import read_prompt
from reverie.models.pocket.sampler import (
    CONTEXT_LEVEL,
    TEMPERATURE,
    frame_noise,
    next_point,
    noise_levels,
)
from reverie.models.pocket.state import Phase, PocketState, WindowFrame
from reverie.models.pocket.world import Past

_ACTIONS = {"up": Action.UP, "down": Action.DOWN, "left": Action.LEFT, "right": Action.RIGHT}
MOVES = tuple(_ACTIONS)

Unit = StepUnit[PocketState]
Result = StepResult[PocketState]


class Units:
    """Run one unit of a session on an instance's networks."""

    def __init__(self, nets: PocketNets, instance: ModelInstance) -> None:
        self._nets = nets
        self._instance = instance

    @torch.inference_mode()
    def run(self, unit: Unit) -> Result:
        """Run exactly the planned unit."""
        match unit.plan.kind:
            case Phase.BEGIN:
                return self._begin(unit)
            case Phase.FIRST_FRAME:
                return self._first_frame(unit.state)
            case "encode_text":
                return self._encode_text(unit)
            case Phase.DENOISE:
                return self._denoise(unit)
            case Phase.DECODE:
                return self._decode(unit.state)
            case Phase.CONTEXT:
                return self._context(unit.state, unit.blocks)
        raise AssertionError(f"pocket has no unit called {unit.plan.kind}")

    def _begin(self, unit: Unit) -> Result:
        prompt = unit.state.prompt if unit.controls.prompt is None else unit.controls.prompt
        named = read_caption(prompt)
        world = first_state(unit.state.seed, named.biome, named.hour)
        biome, hour = Biome(int(world.biome[0])), Hour(int(world.hour[0]))
        text_T, notes = self._embed(prompt, biome, hour)
        state = replace(
            unit.state,
            prompt=prompt,
            biome=biome,
            hour=hour,
            text_T=text_T,
            phase=Phase.FIRST_FRAME,
        )
        return StepResult(state, notes=notes)

    def _first_frame(self, state: PocketState) -> Result:
        picture_HWC = torch.from_numpy(first_frame(state.seed, state.biome, state.hour))
        clean_Zhw = self._nets.encode(picture_HWC[None])[0]
        return StepResult(
            replace(state, point_Zhw=clean_Zhw, phase=Phase.DECODE), checks=(clean_Zhw,)
        )

    def _encode_text(self, unit: Unit) -> Result:
        assert unit.controls.prompt is not None, "the unit is planned for a new prompt only"
        prompt = unit.controls.prompt
        named = read_caption(prompt)
        biome = unit.state.biome if named.biome is None else named.biome
        hour = unit.state.hour if named.hour is None else named.hour
        text_T, notes = self._embed(prompt, biome, hour)
        state = replace(
            _take(unit.state, unit.controls), prompt=prompt, biome=biome, hour=hour, text_T=text_T
        )
        return StepResult(replace(state, phase=Phase.DENOISE), notes=notes)

    def _denoise(self, unit: Unit) -> Result:
        state = unit.state
        if state.phase is Phase.CHUNK:
            state = _take(state, unit.controls)
        if state.past is None:
            state = replace(state, past=self._read_past(state.blocks))
        levels = (*noise_levels(state.steps), 0.0)
        level, next_level = levels[state.step], levels[state.step + 1]
        point_Zhw = self._noise(state) if state.point_Zhw is None else state.point_Zhw
        clean_Zhw, _ = self._forward(
            state, point_Zhw, level, state.window[-1].clean_Zhw, state.action, state.text_T
        )
        point_Zhw = next_point(point_Zhw, clean_Zhw, level, next_level)
        step = state.step + 1
        phase = Phase.DECODE if step == state.steps else Phase.DENOISE
        return StepResult(
            replace(state, point_Zhw=point_Zhw, step=step, phase=phase), checks=(point_Zhw,)
        )

    def _decode(self, state: PocketState) -> Result:
        assert state.point_Zhw is not None, "decode follows the last denoise step"
        assert state.text_T is not None, "the prompt is read before the first frame"
        frames_BCHW = self._nets.codec.decode(state.point_Zhw[None].to(self._instance.dtype))
        frames_FHWC = frames_BCHW.float().clamp(0, 1).permute(0, 2, 3, 1)
        previous_Zhw = (
            state.window[-1].clean_Zhw if state.window else torch.zeros_like(state.point_Zhw)
        )
        made = WindowFrame(state.point_Zhw, previous_Zhw, state.action, state.text_T)
        next_state = replace(
            state,
            phase=Phase.CONTEXT,
            frame=state.frame + 1,
            step=0,
            point_Zhw=None,
            past=None,
            window=(*state.window, made),
        )
        return StepResult(next_state, outputs=(FrameOutput("video", frames_FHWC),))

    def _context(self, state: PocketState, reserved: tuple[BlockId, ...]) -> Result:
        """Write the oldest frame of the window that is not in the cache yet."""
        assert self._instance.blocks is not None, "pocket keeps a cache"
        frame = state.window[len(state.blocks)]
        seen = replace(state, past=self._read_past(state.blocks))
        _, block = self._forward(
            seen, frame.clean_Zhw, CONTEXT_LEVEL, frame.previous_Zhw, frame.action, frame.text_T
        )
        self._instance.blocks.view(reserved[0]).copy_(block)
        keep = self._nets.world.config.window - 1
        blocks = (*state.blocks, *reserved)
        phase = Phase.CHUNK if len(blocks) == len(state.window) else Phase.CONTEXT
        dropped = max(0, len(blocks) - keep)
        state = replace(state, blocks=blocks[dropped:], window=state.window[dropped:], phase=phase)
        return StepResult(state, checks=(block,))

    def _forward(
        self,
        state: PocketState,
        point_Zhw: Tensor,
        level: float,
        previous_Zhw: Tensor,
        action: Action,
        text_T: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Return predicted clean latents [Z, h, w] and the frame's cache block [2, L, A, N, d]."""
        assert text_T is not None, "the prompt is read before the first frame"
        device = self._instance.device
        output = self._nets.world.forward_frame(
            point_Zhw[None],
            torch.full((1,), level, device=device),
            previous_Zhw[None],
            torch.tensor([int(action)], device=device),
            text_T[None],
            state.past,
        )
        block = torch.stack((output.k_BFLAND[0, 0], output.v_BFLAND[0, 0]))
        return output.clean_BFZhw[0, 0], block

    def _read_past(self, blocks: tuple[BlockId, ...]) -> Past | None:
        if not blocks:
            return None
        assert self._instance.blocks is not None, "pocket keeps a cache"
        cached = self._instance.blocks.gather(blocks)[:, None]  # [P, B, 2, L, A, N, d]
        return self._nets.world.read_past(cached[:, :, 0].unbind(0), cached[:, :, 1].unbind(0))

    def _noise(self, state: PocketState) -> Tensor:
        shape = tuple(state.window[-1].clean_Zhw.shape)
        noise = frame_noise(state.seed, state.frame, shape)
        return TEMPERATURE * noise.to(self._instance.device)

    def _embed(
        self, prompt: str, biome: Biome | None, hour: Hour | None
    ) -> tuple[Tensor, PromptNotes]:
        """Embed a prompt behind what is in force and it does not name."""
        read = read_prompt(self._nets.vocabulary, prompt, biome, hour)
        key = CacheKey(
            model=self._instance.spec.name,
            component="text",
            weights_version=self._instance.weights_version,
            inputs=(" ".join(map(str, read.ids)),),
            precision=str(self._instance.dtype),
        )
        text_T = self._instance.encodings.get(key)
        if text_T is None:
            text_T = self._nets.embed([read])[0]
            self._instance.encodings.put(key, text_T)
        return text_T, PromptNotes(read.unknown_words, read.truncated_at)


def _take(state: PocketState, controls: Controls) -> PocketState:
    """Let the controls act on the frame that begins."""
    moved = controls.keys["move"].acting() if "move" in controls.keys else None
    steps = int(controls.parameters.get("steps", state.steps))
    return replace(state, action=_ACTIONS[moved] if moved else Action.WAIT, steps=steps)
