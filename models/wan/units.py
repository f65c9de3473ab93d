"""The work units of causal Wan, by kind; the unit that encodes a prompt is here."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import StepResult, StepUnit
from reverie.models.services.guidance.select import GuidanceFactory
from reverie.models.wan.components import WanComponents
from reverie.models.wan.controls import taken
from reverie.models.wan.prompts import WanPrompts
from reverie.models.wan.state import OnPrompt, WanPhase, WanState
from reverie.models.wan.transformer_units import WanTransformerUnits
from reverie.models.wan.vae_units import WanVaeUnits

Unit = StepUnit[WanState]
Result = StepResult[WanState]


class WanUnits:
    """Runs planned units of one kind, of one or several sessions."""

    def __init__(
        self, components: WanComponents, instance: ModelInstance, policy_for: GuidanceFactory
    ) -> None:
        self._components, self._instance = components, instance
        self._causal = components.causal
        self.frames = WanTransformerUnits(components, instance, policy_for)
        self._pictures = WanVaeUnits(
            components, instance.device, self.frames.repainting, self.frames.committed
        )
        self._prompts = WanPrompts(components, instance)

    @torch.no_grad()
    def run(self, units: Sequence[Unit]) -> list[Result]:
        """Run planned units with equal batch keys."""
        match units[0].plan.kind:
            case "encode_text" | "adapt":
                return [self._turn(unit.state, unit.controls) for unit in units]
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

    def _turn(self, state: WanState, controls: Controls) -> Result:
        """Change to a prompt and a mix of adapters, and recompute what depends on them."""
        prompt = state.prompt if controls.prompt is None else controls.prompt
        mix = self._components.adapters.mix(controls.parameters, state.mix)
        # A revived state receives its own prompt again.
        changed, adapted = prompt != state.prompt, mix != state.mix
        rows = self._prompts.rows(prompt, mix)
        with self._components.adapters.applied(mix):
            text = self._components.transformer.read_prompt(rows[None])
        begun = state.phase is WanPhase.BEGIN
        state = replace(state, prompt=prompt, mix=mix, text=text, turned=not begun)
        state = taken(state, controls)
        if begun:
            return StepResult(replace(state, phase=_first_phase(state)), checks=(rows,))
        restarts = state.on_prompt is OnPrompt.RESTART and not state.restarted
        if state.phase is WanPhase.DENOISE and restarts:
            # Encoded pictures are kept: the block restarts from them.
            state = replace(
                state, phase=WanPhase.BLOCK, step=0, point_FZhw=None, past=None, restarted=True
            )
        replaced = bool(state.pictures) and state.encoder is None
        recached = adapted or (changed and self._causal.recache)
        if recached and state.window and not replaced:
            state = replace(state, phase=WanPhase.RECACHE, stale=adapted)
        return StepResult(state, checks=(rows,))


def _first_phase(state: WanState) -> WanPhase:
    if state.warm:
        return WanPhase.WARM
    return WanPhase.CONTEXT if state.fresh else WanPhase.BLOCK
