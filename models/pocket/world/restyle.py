"""Pocket restyles the pictures of a camera: video to video.

Each picture is encoded, noised to the level that `strength` names, and denoised under the prompt.
The picture itself is the frame before, so that things stay where they are. The noise is the same
for all pictures, so that still parts do not flicker. Before the first picture the session shows the
world of the prompt; after it, frames come only with new pictures or controls.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from reverie.models.contract.controls import NO_CONTROLS, Controls
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import (
    Durable,
    Idle,
    LoopRequest,
    StepBatch,
    StepResult,
    StepUnit,
    WorkPlan,
)
from reverie.models.pocket.network.sampler import frame_noise, noise_levels
from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.simulator.captions import read_caption
from reverie.models.pocket.world.input_frames import latents_of
from reverie.models.pocket.world.kernel import PocketKernel
from reverie.models.pocket.world.state import PocketPhase, PocketState, WindowFrame

STREAM = "camera"
ENCODE = "encode_picture"


@dataclass(frozen=True, slots=True)
class RestyleState(PocketState):
    """A pocket session with a camera.

    Attributes:
        picture_Zhw: latents of the newest picture; None before the first.
        chosen_strength: the parameter; `strength` is 1 until there is a picture.
    """

    picture_Zhw: Tensor | None = None
    chosen_strength: float = 1.0


class PocketRestyleKernel(PocketKernel):
    """The `restyle` loop of pocket."""

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> PocketState:
        """Bind seed, prompt and parameters; no picture yet."""
        state = PocketKernel.init_state(self, request, instance)
        return _restyle_state(state, request.parameters["strength"])

    def plan_step(self, state: PocketState, controls: Controls) -> WorkPlan | Idle:
        """Restyle the newest picture, and again when the prompt or a parameter has changed."""
        assert isinstance(state, RestyleState), "the states of this loop"
        if state.phase is PocketPhase.CHUNK:
            changed = controls.prompt is not None or bool(controls.parameters)
            if controls.media.get(STREAM) or (state.picture_Zhw is not None and changed):
                return self._plan(state, ENCODE, "codec", takes=True)
            if state.picture_Zhw is not None:
                return Idle("waiting for a picture")
        # A world that begins takes no controls while a picture waits: the picture would be lost.
        return PocketKernel.plan_step(self, state, NO_CONTROLS if controls.media else controls)

    def run_step(self, batch: StepBatch[PocketState]) -> Sequence[StepResult[PocketState]]:
        """Run the units; pictures are encoded one session after another."""
        if batch.units[0].plan.kind == ENCODE:
            return [self._encode_picture(unit) for unit in batch.units]
        results = PocketKernel.run_step(self, batch)
        if batch.units[0].plan.kind == PocketPhase.DECODE:
            return [replace(each, state=_without_past(each.state)) for each in results]
        if batch.units[0].plan.takes_controls:
            pairs = zip(results, batch.units, strict=True)
            return [replace(each, state=_with_strength(each.state, unit)) for each, unit in pairs]
        return results

    def revive(
        self, durable: Durable, request: LoopRequest, instance: ModelInstance
    ) -> PocketState:
        """Restore the newest frame; the camera sends its next picture."""
        state = PocketKernel.revive(self, durable, request, instance)
        return _restyle_state(state, request.parameters["strength"])

    @torch.inference_mode()
    def _encode_picture(self, unit: StepUnit[PocketState]) -> StepResult[PocketState]:
        state, controls = unit.state, unit.controls
        assert isinstance(state, RestyleState), "the states of this loop"
        pushed = controls.media.get(STREAM, ())
        picture_Zhw = latents_of(pushed[-1:], self._nets)[0] if pushed else state.picture_Zhw
        assert picture_Zhw is not None, "the unit is planned for a picture"
        prompt = state.prompt if controls.prompt is None else controls.prompt
        # The colours come from the camera, so the prompt gets no reminder of biome and hour.
        named = read_caption(prompt)
        biome = state.biome if named.biome is None else named.biome
        hour = state.hour if named.hour is None else named.hour
        told = self._units.with_prompt(unit, prompt, biome, hour, reminded=False)
        chosen_strength = float(controls.parameters.get("strength", state.chosen_strength))
        return replace(
            told, state=_noised(told.state, picture_Zhw, chosen_strength), checks=(picture_Zhw,)
        )


def _noised(state: PocketState, picture_Zhw: Tensor, strength: float) -> PocketState:
    assert isinstance(state, RestyleState), "the states of this loop"
    assert state.text_T is not None, "the prompt was just read"
    level = noise_levels(state.steps, strength)[0]
    noise_Zhw = frame_noise(state.seed, 0, tuple(picture_Zhw.shape)).to(picture_Zhw.device)
    nothing_Zhw = torch.zeros_like(picture_Zhw)
    return replace(
        state,
        picture_Zhw=picture_Zhw,
        chosen_strength=strength,
        strength=strength,
        point_Zhw=(1 - level) * picture_Zhw + level * noise_Zhw,
        window=(WindowFrame(picture_Zhw, nothing_Zhw, Action.WAIT, state.text_T),),
        blocks=(),
        past=None,
        phase=PocketPhase.DENOISE,
    )


def _without_past(state: PocketState) -> PocketState:
    """Wait for the next picture: a restyled one has no past, and needs no context pass."""
    assert isinstance(state, RestyleState), "the states of this loop"
    if state.picture_Zhw is None:
        return state
    return replace(state, window=state.window[-1:], phase=PocketPhase.CHUNK)


def _with_strength(state: PocketState, unit: StepUnit[PocketState]) -> PocketState:
    assert isinstance(state, RestyleState), "the states of this loop"
    return replace(
        state,
        chosen_strength=float(unit.controls.parameters.get("strength", state.chosen_strength)),
    )


def _restyle_state(state: PocketState, strength: float) -> RestyleState:
    if isinstance(state, RestyleState):
        return state
    named = {name: getattr(state, name) for name in PocketState.__slots__}
    return RestyleState(**named, chosen_strength=strength)
