"""The units of work of the world loop: each takes states and returns the next ones.

Units of a kind run together, in one pass of the network that they need.

Shapes: Z latent channels on a grid h x w; B sessions of a batch, H = W = 128 pixels.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import FrameOutput, StepResult
from reverie.models.pocket.network.networks import PocketNets
from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.simulator.captions import read_caption
from reverie.models.pocket.simulator.walker import Facing
from reverie.models.pocket.world.actions import with_controls
from reverie.models.pocket.world.first_frame import first_frame, first_state
from reverie.models.pocket.world.frame_units import PocketFrameUnits, Result, Unit
from reverie.models.pocket.world.prompts import PocketPrompts
from reverie.models.pocket.world.state import PocketPhase, PocketState, WindowFrame
from reverie.models.services.guidance.policies import CFGPolicy


class PocketUnits:
    """Run units of sessions on an instance's networks.

    Args:
        nets: the networks.
        instance: what they are part of.
        policy: the guidance policy of a session, by its scale.
    """

    def __init__(
        self, nets: PocketNets, instance: ModelInstance, policy: Callable[[float], CFGPolicy]
    ) -> None:
        self._nets = nets
        self._instance = instance
        self._prompts = PocketPrompts(nets, instance)
        self._frames = PocketFrameUnits(nets.world, self._prompts, instance, policy)

    @torch.inference_mode()
    def run(self, units: Sequence[Unit]) -> list[Result]:
        """Run exactly the planned units, all of one kind."""
        match units[0].plan.kind:
            case PocketPhase.BEGIN:
                return [self._begin(unit) for unit in units]
            case PocketPhase.FIRST_FRAME:
                return self._first_frames([unit.state for unit in units])
            case "encode_text":
                return [self._encode_text(unit) for unit in units]
            case PocketPhase.DENOISE:
                return self._frames.denoise(units)
            case PocketPhase.DECODE:
                return self._decode([unit.state for unit in units])
            case PocketPhase.CONTEXT:
                return self._frames.context(units)
        raise AssertionError(f"pocket has no unit called {units[0].plan.kind}")

    def _begin(self, unit: Unit) -> Result:
        prompt = unit.state.prompt if unit.controls.prompt is None else unit.controls.prompt
        named = read_caption(prompt)
        world = first_state(unit.state.seed, named.biome, named.hour)
        biome, hour = Biome(int(world.biome[0])), Hour(int(world.hour[0]))
        text_T, notes = self._prompts.embed(prompt, biome, hour)
        state = replace(
            unit.state,
            prompt=prompt,
            biome=biome,
            hour=hour,
            text_T=text_T,
            facing=Facing(int(world.facing[0])),
            phase=PocketPhase.FIRST_FRAME,
        )
        return StepResult(state, notes=notes)

    def _first_frames(self, states: Sequence[PocketState]) -> list[Result]:
        pictures = [first_frame(state.seed, state.biome, state.hour) for state in states]
        clean_BZhw = self._nets.encode(torch.stack([torch.from_numpy(one) for one in pictures]))
        return [
            StepResult(
                replace(state, point_Zhw=clean_Zhw.clone(), phase=PocketPhase.DECODE),
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
        told = self.with_prompt(unit, prompt, biome, hour)
        return replace(told, state=replace(told.state, phase=PocketPhase.DENOISE))

    def with_prompt(
        self,
        unit: Unit,
        prompt: str,
        biome: Biome | None,
        hour: Hour | None,
        *,
        reminded: bool = True,
    ) -> Result:
        """Return the result of a unit that takes its controls under a prompt, biome and hour.

        Args:
            reminded: whether the encoded prompt names a biome and hour that the text does not.
        """
        kept = (biome, hour) if reminded else (None, None)
        text_T, notes = self._prompts.embed(prompt, *kept)
        state = replace(
            with_controls(unit.state, unit.controls),
            prompt=prompt,
            biome=biome,
            hour=hour,
            text_T=text_T,
        )
        return StepResult(state, notes=notes)

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


def _finished(state: PocketState, clean_Zhw: Tensor) -> PocketState:
    """Append the finished frame to the window."""
    assert state.text_T is not None, "the prompt is read before the first frame"
    previous_Zhw = state.window[-1].clean_Zhw if state.window else torch.zeros_like(clean_Zhw)
    made = WindowFrame(clean_Zhw, previous_Zhw, state.action, state.text_T, state.facing)
    return replace(
        state,
        phase=PocketPhase.CONTEXT,
        frame=state.frame + 1,
        step=0,
        point_Zhw=None,
        past=None,
        delta=None,
        window=(*state.window, made),
    )
