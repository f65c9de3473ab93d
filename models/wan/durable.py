"""The durable part of a Wan session: clean latents and the prompt.

Shapes: F latent frames of Z channels on a grid h x w.
"""

import json
from collections.abc import Sequence

import torch
from torch import Tensor

from reverie.models.contract.loop import Durable
from reverie.models.wan.config import CausalConfig
from reverie.models.wan.state import LatentFrame, WanState
from reverie.models.wan.window import block_at


def durable_state(state: WanState, loop: str, weights_version: str) -> Durable | None:
    """Return the durable part of a state; None before the first latent frame."""
    frames = {frame.number: frame for frame in (*state.sink, *state.window, *state.fresh)}
    if not frames:
        return None
    return _durable(loop, weights_version, list(frames.values()), state.prompt, state.offset)


def durable_latents(
    latents_FZhw: Tensor,
    prompt: str,
    causal: CausalConfig,
    weights_version: str,
    loop: str = "video_continuation",
) -> Durable:
    """Return the durable part for a session that extends an existing video.

    Args:
        latents_FZhw: normalised, from the video's first frame; one alone is a picture.
        prompt: a description of the video.
        causal: determines where blocks begin.
        weights_version: of the instance that will run the session.
        loop: the loop that will run.
    """
    frames: list[LatentFrame] = []
    block = 0
    for number, clean_Zhw in enumerate(latents_FZhw):
        if number - block == block_at(block, causal):
            block = number
        frames.append(LatentFrame(number, block, clean_Zhw))
    return _durable(loop, weights_version, frames, prompt)


def revived_state(durable: Durable, seed: int, device: torch.device) -> WanState:
    """Restore the history: the decoder runs on it again, and context passes write its cache."""
    told = json.loads(durable.text)
    cleans = durable.data["clean"].to(device).unbind(0)
    numbers, blocks = durable.data["number"].tolist(), durable.data["block"].tolist()
    frames = tuple(
        LatentFrame(number, block, clean_Zhw)
        for number, block, clean_Zhw in zip(numbers, blocks, cleans, strict=True)
    )
    # The frames between sink and window may be missing, so that the decoder starts at the window.
    newest = frames[-1].number - len(frames) + 1
    warm = [frame for index, frame in enumerate(frames) if frame.number == newest + index]
    return WanState(
        seed=seed,
        prompt=str(told["prompt"]),
        offset=int(told["offset"]),
        fresh=frames,
        warm=tuple(frame.clean_Zhw for frame in warm),
    )


def _durable(
    loop: str, weights_version: str, frames: Sequence[LatentFrame], prompt: str, offset: int = 0
) -> Durable:
    return Durable(
        loop=loop,
        weights_version=weights_version,
        data={
            "clean": torch.stack([frame.clean_Zhw for frame in frames]).cpu(),
            "number": torch.tensor([frame.number for frame in frames]),
            "block": torch.tensor([frame.block for frame in frames]),
        },
        text=json.dumps({"prompt": prompt, "offset": offset}),
    )
