"""The loop `video_continuation` of causal Wan: a block of latent frames a chunk.

A block consists of denoise calls (a new prompt is encoded before one of them); the last one
commits. Then its frames are decoded, one latent frame a unit, and put out; after that, off the
viewer's path, the context pass writes the block's keys and values. The cache never holds noisy
frames.

A pushed picture or clip replaces the history: it is encoded, one latent frame a unit, decoded and
shown like generated frames, and written to the cache, block by block.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import (
    Durable,
    Idle,
    LoopKernel,
    LoopRequest,
    PlanOptions,
    StepBatch,
    StepResult,
    WorkPlan,
)
from reverie.models.contract.spec import LoopSpec
from reverie.models.services.guidance.select import GuidanceFactory
from reverie.models.wan.components import WanComponents
from reverie.models.wan.controls import hears, on_prompt, pushed, taken
from reverie.models.wan.durable import durable_state, revived_state
from reverie.models.wan.guidance import in_one_batch
from reverie.models.wan.input_frames import is_last_group, next_group
from reverie.models.wan.network.features import FIRST_GROUP, GROUP, shape_key
from reverie.models.wan.state import OnPrompt, WanPhase, WanState
from reverie.models.wan.units import WanUnits
from reverie.models.wan.vae_units import decoder_of
from reverie.models.wan.window import block_at, due_block, seen_past, unmoved


class WanKernel(LoopKernel[WanState]):
    """Self-Forcing and LongLive, depending on the `CausalConfig`."""

    encoding = "encode_clip"
    """The kind of unit that encodes pushed pictures."""

    def __init__(
        self,
        spec: LoopSpec,
        components: WanComponents,
        instance: ModelInstance,
        policy_for: GuidanceFactory = in_one_batch,
    ) -> None:
        """Bind the loop to its networks; `policy_for` makes the guidance of a session."""
        self.spec = spec
        self._instance = instance
        self._causal = components.causal
        self._adapters = components.adapters
        self._in_place = components.transformer.reads_blocks
        self._units = WanUnits(components, instance, policy_for)

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> WanState:
        """Bind seed, prompt and parameters."""
        mix = self._adapters.mix(request.parameters)
        state = WanState(request.seed, request.prompt, mix=mix)
        return taken(state, Controls(parameters=request.parameters))

    def plan_step(self, state: WanState, controls: Controls) -> WorkPlan | Idle:
        """Plan the next unit, in the order of `WanPhase`."""
        match state.phase:
            case WanPhase.BEGIN:
                # A restored history has its own prompt.
                heard = hears(state, controls, self._adapters) and not state.fresh
                return self._plan(state, "encode_text", "text", takes_controls=heard)
            case WanPhase.WARM:
                return self._plan(state, "warm_decoder", "vae", shape_key(state.decoder))
            case WanPhase.BLOCK:
                return self._plan_chunk(state, controls)
            case WanPhase.ENCODE:
                return self._plan_rest(state)
            case WanPhase.DENOISE:
                return self._plan_within(state, controls)
            case WanPhase.RECACHE:
                frames, held = len(state.window), unmoved(state.frame, state.window, self._causal)
                writes = frames if state.stale else frames - held
                call = (frames, held, writes)
                return self._plan(state, "recache", "transformer", call, writes=writes)
            case WanPhase.DECODE:
                shape = shape_key(decoder_of(state))
                return self._plan(state, "decode", "vae", shape, shows=len(state.waiting) == 1)
            case WanPhase.CONTEXT:
                frames = len(due_block(state.fresh, state.clip_continues, self._causal))
                shape = self._seen(state, frames)
                return self._plan(state, "context", "transformer", shape, writes=frames)

    def run_step(self, batch: StepBatch[WanState]) -> Sequence[StepResult[WanState]]:
        """Run the units together."""
        return self._units.run(batch.units)

    def durable(self, state: WanState) -> Durable | None:
        """Return the clean latents of the window and the sink, and the prompt."""
        return durable_state(state, self.spec.name, self._instance.weights_version)

    def revive(self, durable: Durable, request: LoopRequest, instance: ModelInstance) -> WanState:
        """Restore the window; the next units write its cache again.

        It is exact if the window has not slid and the prompt has not changed.
        """
        state = revived_state(durable, request.seed, instance.device)
        state = replace(state, mix=self._adapters.mix(request.parameters))
        return taken(state, Controls(parameters=request.parameters))

    # --- kinds of chunks ---

    def _plan_chunk(self, state: WanState, controls: Controls) -> WorkPlan | Idle:
        pictures = state.pictures if state.turned else (*state.pictures, *pushed(controls))
        begins = state.encoder is None
        ready = next_group(pictures, begins)
        if state.clip_continues and not ready:
            return Idle("the rest of the clip has not come yet")
        if hears(state, controls, self._adapters):
            return self._plan_turn(state, controls)
        if not ready:
            return self._plan_denoise(state, takes_controls=not state.turned)
        last = is_last_group(pictures, begins)
        return self._plan_encode(state, takes_controls=not state.turned, commits=last)

    def _plan_within(self, state: WanState, controls: Controls) -> WorkPlan:
        """Plan for a block in progress: a clip replaces it, or waits for its end."""
        pictures, switch = pushed(controls), on_prompt(state, controls)
        if pictures and (switch is not OnPrompt.RESTART or state.restarted):
            return self._plan_denoise(state)  # a prompt that was sent with a clip waits with it
        if hears(state, controls, self._adapters) and switch is not OnPrompt.WAIT:
            return self._plan_turn(state, controls)
        if pictures and not state.turned:
            last = is_last_group(pictures, begins=True)
            return self._plan_encode(state, takes_controls=True, commits=last)
        return self._plan_denoise(state)

    def _plan_turn(self, state: WanState, controls: Controls) -> WorkPlan:
        """Plan the change to another prompt, or only to other adapters."""
        kind = "adapt" if controls.prompt is None else "encode_text"
        return self._plan(state, kind, "text", takes_controls=True)

    def _plan_rest(self, state: WanState) -> WorkPlan:
        """Plan the encoding of the remaining pictures."""
        last = is_last_group(state.pictures, state.encoder is None)
        return self._plan_encode(state, commits=last)

    def _plan_encode(
        self, state: WanState, *, takes_controls: bool = False, commits: bool
    ) -> WorkPlan:
        due = FIRST_GROUP if state.encoder is None else GROUP
        shape = (due, *shape_key(state.encoder))
        return self._plan(
            state, self.encoding, "vae", shape, takes_controls=takes_controls, commits=commits
        )

    def _plan_denoise(self, state: WanState, *, takes_controls: bool = False) -> WorkPlan:
        steps = len(state.timesteps or self._units.frames.timesteps)
        frames = len(state.source) or block_at(state.frame, self._causal)
        return self._plan(
            state,
            "denoise",
            "transformer",
            self._seen(state, frames),
            takes_controls=takes_controls,
            commits=state.step + 1 == steps,
        )

    def _seen(self, state: WanState, frames: int) -> tuple[int, int]:
        """Return what is equal for the calls of a batch: frames in progress and in the window.

        With attention in place, windows may differ in length.
        """
        seen = len(seen_past(state.blocks, frames, self._causal))
        return frames, min(seen, 1) if self._in_place else seen

    def _plan(
        self,
        state: WanState,
        kind: str,
        component: str,
        shape: tuple[int, ...] = (),
        **options: Unpack[PlanOptions],
    ) -> WorkPlan:
        adapters = self._adapters.versions(state.mix) if component == "transformer" else ()
        if options.get("shows"):
            options["streams"] = ("video",)
        return WorkPlan.of(self._instance, self.spec, kind, shape, adapters, **options)
