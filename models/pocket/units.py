"""The units of work of the world loop: each takes states and returns the next ones.

Units of a kind run together, in one pass of the network that they need.

Shapes: Z latent channels on a grid h x w, T size of a text embedding; B sessions of a batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from reverie.models.blocks import BlockId
from reverie.models.cache import CacheKey
from reverie.models.controls import Controls
from reverie.models.guidance import CFGPolicy, GuidedCall
from reverie.models.instance import ModelInstance
from reverie.models.loop import FrameOutput, PromptNotes, StepResult, StepUnit
from reverie.models.pocket.biomes import Action, Biome, Hour
from reverie.models.pocket.calls import CallRow, GuidedRow, call_rows, guided_rows
from reverie.models.pocket.captions import read_caption
from reverie.models.pocket.first_frame import first_frame, first_state
from reverie.models.pocket.nets import PocketNets
from reverie.models.pocket.past_rows import PastRow, read_rows
from reverie.models.pocket.reading import read_prompt
from reverie.models.pocket.sampler import (
    CONTEXT_LEVEL,
    TEMPERATURE,
    frame_noise,
    next_point,
    noise_levels,
)
from reverie.models.pocket.state import Phase, PocketState, WindowFrame
from reverie.models.pocket.vocabulary import TokenizedPrompt

_ACTIONS = {"up": Action.UP, "down": Action.DOWN, "left": Action.LEFT, "right": Action.RIGHT}
MOVES = tuple(_ACTIONS)
_EMPTY_PROMPT = TokenizedPrompt((), (), None)

Unit = StepUnit[PocketState]
Result = StepResult[PocketState]


class Units:
    """Run units of sessions on an instance's networks.

    Args:
        nets: the networks.
        instance: what they are part of.
        policy: how a session is guided, by its scale.
    """

    def __init__(
        self, nets: PocketNets, instance: ModelInstance, policy: Callable[[float], CFGPolicy]
    ) -> None:
        self._nets = nets
        self._instance = instance
        self._policy = policy

    @torch.inference_mode()
    def run(self, units: Sequence[Unit]) -> list[Result]:
        """Run exactly the planned units, all of one kind."""
        match units[0].plan.kind:
            case Phase.BEGIN:
                return [self._begin(unit) for unit in units]
            case Phase.FIRST_FRAME:
                return self._first_frames([unit.state for unit in units])
            case "encode_text":
                return [self._encode_text(unit) for unit in units]
            case Phase.DENOISE:
                return self._denoise(units)
            case Phase.DECODE:
                return self._decode([unit.state for unit in units])
            case Phase.CONTEXT:
                return self._context(units)
        raise AssertionError(f"pocket has no unit called {units[0].plan.kind}")

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

    def _first_frames(self, states: Sequence[PocketState]) -> list[Result]:
        pictures = [first_frame(state.seed, state.biome, state.hour) for state in states]
        clean_BZhw = self._nets.encode(torch.stack([torch.from_numpy(one) for one in pictures]))
        return [
            StepResult(
                replace(state, point_Zhw=clean_Zhw.clone(), phase=Phase.DECODE),
                checks=(clean_Zhw,),
            )
            for state, clean_Zhw in zip(states, clean_BZhw, strict=True)
        ]

    def _encode_text(self, unit: Unit) -> Result:
        assert unit.controls.prompt is not None, "the unit is planned for a new prompt only"
        prompt = unit.controls.prompt
        named = read_caption(prompt)
        biome = unit.state.biome if named.biome is None else named.biome
        hour = unit.state.hour if named.hour is None else named.hour
        told = self.told(unit, prompt, biome, hour)
        return replace(told, state=replace(told.state, phase=Phase.DENOISE))

    def told(
        self,
        unit: Unit,
        prompt: str,
        biome: Biome | None,
        hour: Hour | None,
        *,
        reminded: bool = True,
    ) -> Result:
        """Let the controls of a unit act, under a prompt, where biome and hour are in force.

        Args:
            reminded: whether the model is told of those that the prompt leaves open.
        """
        kept = (biome, hour) if reminded else (None, None)
        text_T, notes = self._embed(prompt, *kept)
        state = replace(
            _take(unit.state, unit.controls), prompt=prompt, biome=biome, hour=hour, text_T=text_T
        )
        return StepResult(state, notes=notes)

    def _denoise(self, units: Sequence[Unit]) -> list[Result]:
        taken = [
            _take(unit.state, unit.controls) if unit.state.phase is Phase.CHUNK else unit.state
            for unit in units
        ]
        states = self._with_past(taken)
        rows = [self._denoise_row(state) for state in states]
        results = []
        for state, row, guided in zip(
            states, rows, guided_rows(self._nets.world, rows), strict=True
        ):
            step = state.step + 1
            next_level = (*noise_levels(state.steps, state.strength), 0.0)[step]
            point_Zhw = next_point(row.row.point_Zhw, guided.prediction, row.row.level, next_level)
            phase = Phase.DECODE if step == state.steps else Phase.DENOISE
            next_state = replace(
                state, point_Zhw=point_Zhw, step=step, phase=phase, delta=guided.delta
            )
            results.append(StepResult(next_state, checks=(point_Zhw,)))
        return results

    def _denoise_row(self, state: PocketState) -> GuidedRow:
        assert state.text_T is not None, "the prompt is read before the first frame"
        level = noise_levels(state.steps, state.strength)[state.step]
        row = CallRow(
            point_Zhw=self._noise(state) if state.point_Zhw is None else state.point_Zhw,
            level=level,
            previous_Zhw=state.window[-1].clean_Zhw,
            action=state.action,
            text_T=state.text_T,
            past=state.past,
        )
        policy = self._policy(state.guidance)
        call = GuidedCall(level, self._instance.weights_version, state.prompt, state.frame)
        return GuidedRow(row, self._embedding(_EMPTY_PROMPT), policy, call, state.delta)

    def _decode(self, states: Sequence[PocketState]) -> list[Result]:
        points = [state.point_Zhw for state in states if state.point_Zhw is not None]
        assert len(points) == len(states), "decode follows the last denoise step"
        latents_BZhw = torch.stack(points).to(self._instance.dtype)
        frames_BCHW = self._nets.codec.decode(latents_BZhw).float().clamp(0, 1)
        return [
            StepResult(
                _finished(state, point_Zhw),
                outputs=(FrameOutput("video", frames_CHW[None].permute(0, 2, 3, 1)),),
            )
            for state, point_Zhw, frames_CHW in zip(states, points, frames_BCHW, strict=True)
        ]

    def _context(self, units: Sequence[Unit]) -> list[Result]:
        """Write the oldest frame of each window that is not in the cache yet."""
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
                    frame.action,
                    frame.text_T,
                    past,
                )
            )
        output = call_rows(self._nets.world, rows)
        results = []
        for index, unit in enumerate(units):
            block = pool.view(unit.blocks[0])
            torch.stack((output.k_BFLAND[index, 0], output.v_BFLAND[index, 0]), out=block)
            state = self._remembered(unit.state, (*unit.state.blocks, *unit.blocks))
            # What is not finite in one layer is not in any after it.
            results.append(StepResult(state, checks=(block[:, -1],)))
        return results

    def _remembered(self, state: PocketState, blocks: tuple[BlockId, ...]) -> PocketState:
        phase = Phase.CHUNK if len(blocks) == len(state.window) else Phase.CONTEXT
        dropped = max(0, len(blocks) - (self._nets.world.config.window - 1))
        return replace(state, blocks=blocks[dropped:], window=state.window[dropped:], phase=phase)

    def _with_past(self, states: Sequence[PocketState]) -> list[PocketState]:
        """Read the windows of those whose frame begins."""
        begun = [state for state in states if state.past is None]
        read = iter(self._read(begun))
        return [replace(s, past=next(read)) if s.past is None else s for s in states]

    def _read(self, states: Sequence[PocketState]) -> Sequence[PastRow | None]:
        if not states or not states[0].blocks:
            return [None] * len(states)
        assert self._instance.blocks is not None, "pocket keeps a cache"
        windows = [state.blocks for state in states]
        return read_rows(self._nets.world, self._instance.blocks, windows)

    def _noise(self, state: PocketState) -> Tensor:
        shape = tuple(state.window[-1].clean_Zhw.shape)
        noise = frame_noise(state.seed, state.frame, shape)
        return TEMPERATURE * noise.to(self._instance.device)

    def _embed(
        self, prompt: str, biome: Biome | None, hour: Hour | None
    ) -> tuple[Tensor, PromptNotes]:
        """Embed a prompt behind what is in force and it does not name."""
        read = read_prompt(self._nets.vocabulary, prompt, biome, hour)
        return self._embedding(read), PromptNotes(read.unknown_words, read.truncated_at)

    def _embedding(self, read: TokenizedPrompt) -> Tensor:
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
        return text_T


def _take(state: PocketState, controls: Controls) -> PocketState:
    """Let the controls act on the frame that begins."""
    moved = controls.keys["move"].acting() if "move" in controls.keys else None
    return replace(
        state,
        action=_ACTIONS[moved] if moved else Action.WAIT,
        steps=int(controls.parameters.get("steps", state.steps)),
        guidance=float(controls.parameters.get("guidance", state.guidance)),
    )


def _finished(state: PocketState, clean_Zhw: Tensor) -> PocketState:
    """Put the frame that was made into the window."""
    assert state.text_T is not None, "the prompt is read before the first frame"
    previous_Zhw = state.window[-1].clean_Zhw if state.window else torch.zeros_like(clean_Zhw)
    made = WindowFrame(clean_Zhw, previous_Zhw, state.action, state.text_T)
    return replace(
        state,
        phase=Phase.CONTEXT,
        frame=state.frame + 1,
        step=0,
        point_Zhw=None,
        past=None,
        delta=None,
        window=(*state.window, made),
    )
