"""The work units of causal Wan, by their kinds; a prompt is read here."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from reverie.models.cache import CacheKey
from reverie.models.controls import Controls
from reverie.models.instance import ModelInstance
from reverie.models.loop import StepResult, StepUnit
from reverie.models.wan.frame_units import FrameUnits
from reverie.models.wan.parts import WanParts
from reverie.models.wan.picture_units import PictureUnits
from reverie.models.wan.state import OnPrompt, Phase, WanState
from reverie.models.wan.wishes import taken

Unit = StepUnit[WanState]
Result = StepResult[WanState]


class Units:
    """Runs planned units of one kind, of one or several sessions."""

    def __init__(self, parts: WanParts, instance: ModelInstance) -> None:
        self._parts, self._instance = parts, instance
        self._causal = parts.causal
        self.frames = FrameUnits(parts, instance)
        self._pictures = PictureUnits(parts, self.frames.repainting, self.frames.committed)

    @torch.no_grad()
    def run(self, units: Sequence[Unit]) -> list[Result]:
        """Run the units that a plan names; their batch keys are equal."""
        match units[0].plan.kind:
            case "encode_text":
                return [self._encode_text(unit.state, unit.controls) for unit in units]
            case "warm_decoder":
                return self._pictures.warm(units)
            case "encode_clip":
                return self._pictures.encode_clip(units)
            case "encode_camera":
                return self._pictures.encode_camera(units)
            case "denoise":
                return self.frames.denoise(units)
            case "recache":
                return self.frames.recache(units)
            case "decode":
                return self._pictures.decode(units)
            case "context":
                return self.frames.context(units)
        raise AssertionError(f"causal Wan has no unit called {units[0].plan.kind}")

    def _encode_text(self, state: WanState, controls: Controls) -> Result:
        prompt = state.prompt if controls.prompt is None else controls.prompt
        # A state that was revived is told its own prompt again.
        changed = prompt != state.prompt
        rows = self._rows(prompt)
        text = self._parts.transformer.read_prompt(rows[None])
        begun = state.phase is Phase.BEGIN
        state = taken(replace(state, prompt=prompt, text=text, turned=not begun), controls)
        if begun:
            return StepResult(replace(state, phase=_first_phase(state)), checks=(rows,))
        restarts = state.on_prompt is OnPrompt.RESTART and not state.restarted
        if state.phase is Phase.DENOISE and restarts:
            # What was painted over stays: the block begins again from there.
            state = replace(
                state, phase=Phase.BLOCK, step=0, point_FZhw=None, past=None, restarted=True
            )
        replaced = bool(state.pictures) and state.encoder is None
        if changed and self._causal.recache and state.window and not replaced:
            state = replace(state, phase=Phase.RECACHE)
        return StepResult(state, checks=(rows,))

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


def _first_phase(state: WanState) -> Phase:
    if state.warm:
        return Phase.WARM
    return Phase.CONTEXT if state.fresh else Phase.BLOCK
