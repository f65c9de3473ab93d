"""The durable part of a pocket session, sufficient to continue it: the window and a few words.

Shapes: F frames of the window, Z latent channels on a grid h x w, T size of a text embedding.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from reverie.models.contract.loop import Durable
from reverie.models.pocket.network.networks import PocketNets
from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.simulator.walker import action_and_facing
from reverie.models.pocket.world.prompts import read_prompt
from reverie.models.pocket.world.state import PocketPhase, PocketState, WindowFrame


@dataclass(frozen=True, slots=True)
class DurableWindow:
    """Frames that a session can start from, as if it had generated them.

    Attributes:
        clean_FZhw: latents of 1 to a window of frames, oldest first.
        before_Zhw: latents of the frame before them; zeros when there was none.
        actions: the stance behind each frame (`walker.stance_of`).
        prompt: the prompt in effect, which the frames show.
        biome: of the last frame.
        hour: of the last frame.
        frame: the number of the next frame; it numbers the noise.
    """

    clean_FZhw: Tensor
    before_Zhw: Tensor
    actions: Sequence[int]
    prompt: str
    biome: Biome
    hour: Hour
    frame: int


def durable_clip(clip: DurableWindow, nets: PocketNets, steps: int) -> Durable:
    """Return the durable state of a session that continues a clip in `steps` denoise steps."""
    read = read_prompt(nets.vocabulary, clip.prompt, clip.biome, clip.hour)
    text_T = nets.embed([read])[0]
    return _durable(
        "world_model",
        nets.version,
        clip.clean_FZhw,
        clip.before_Zhw,
        text_T.expand(len(clip.actions), -1),
        clip.actions,
        _told(clip.frame, clip.prompt, steps, clip.biome, clip.hour),
    )


def durable_state(state: PocketState, loop: str, weights_version: str) -> Durable | None:
    """Return the durable part of a state; None before the first frame. About 50 kB."""
    if not state.window or state.biome is None or state.hour is None:
        return None
    return _durable(
        loop,
        weights_version,
        torch.stack([frame.clean_Zhw for frame in state.window]),
        state.window[0].previous_Zhw,
        torch.stack([frame.text_T for frame in state.window]),
        [frame.stance for frame in state.window],
        _told(state.frame, state.prompt, state.steps, state.biome, state.hour),
    )


def revived_state(durable: Durable, seed: int, device: torch.device) -> PocketState:
    """Restore the window; the next context units write its cache again.

    Not exact: the oldest frames were first written with frames in the window that are gone now.
    """
    told = json.loads(durable.text)
    data = {name: tensor.to(device) for name, tensor in durable.data.items()}
    cleans = data["clean"].unbind(0)
    window = tuple(
        WindowFrame(clean, previous, action, text, facing)
        for clean, previous, (action, facing), text in zip(
            cleans,
            (data["before"], *cleans[:-1]),
            map(action_and_facing, data["action"].tolist()),
            data["text"].unbind(0),
            strict=True,
        )
    )
    return PocketState(
        seed=seed,
        prompt=str(told["prompt"]),
        steps=int(told["steps"]),
        biome=Biome(told["biome"]),
        hour=Hour(told["hour"]),
        phase=PocketPhase.CONTEXT,
        frame=int(told["frame"]),
        text_T=window[-1].text_T,
        facing=window[-1].facing,
        window=window,
    )


def _durable(
    loop: str,
    weights_version: str,
    clean_FZhw: Tensor,
    before_Zhw: Tensor,
    text_FT: Tensor,
    actions: Sequence[int],
    text: str,
) -> Durable:
    return Durable(
        loop=loop,
        weights_version=weights_version,
        data={
            "clean": clean_FZhw.cpu(),
            "before": before_Zhw.cpu(),
            "text": text_FT.cpu(),
            "action": torch.tensor([int(action) for action in actions]),
        },
        text=text,
    )


def _told(frame: int, prompt: str, steps: int, biome: Biome, hour: Hour) -> str:
    return json.dumps(
        {"frame": frame, "prompt": prompt, "steps": steps, "biome": biome, "hour": hour}
    )
