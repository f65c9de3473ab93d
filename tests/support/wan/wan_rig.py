"""A tiny causal Wan under a driver, and what people show it."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import torch
from loop_rig import Rig
from numpy.typing import NDArray
from tiny_wan import TinyWan, tiny_options
from torch import Tensor

from reverie.engine.driver import LoopDriver
from reverie.engine.emissions import ControlApplied
from reverie.engine.inputs import ControlId, StreamInput
from reverie.engine.options import DriverOptions
from reverie.models.contract.controls import MediaInput
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import LoopRequest
from reverie.models.wan.checkpoint.loading import TINY_GRID, random_components
from reverie.models.wan.components import LatentDecoder, WanComponents
from reverie.models.wan.config import CausalConfig
from reverie.models.wan.description import wan_spec
from reverie.models.wan.spec import assemble
from reverie.models.wan.state import WanState

Pictures = list[NDArray[np.uint8]]

Again = Callable[[], Rig]
"""Makes a rig without sessions on a model that is loaded."""

HEIGHT, WIDTH = (8 * side for side in TINY_GRID)


class SetFamily(TinyWan):
    """The tiny model, with settings of its own, and with another decoder if one is given."""

    def __init__(self, causal: CausalConfig, decoder: LatentDecoder | None = None) -> None:
        super().__init__()
        components = random_components().components
        self.components = replace(components, causal=causal, decoder=decoder or components.decoder)
        self.spec = wan_spec(components.transformer.config, causal, components.grid)

    def load(self, options: LoadOptions) -> ModelInstance:
        instance = assemble(self.components, "set", options)
        self._components[instance.name] = self.components
        return instance


def wan_rig(loop: str = "", sessions: int = 4) -> Rig:
    return Rig(TinyWan(), tiny_options(sessions=sessions), loop=loop)


def components_of(rig: Rig) -> WanComponents:
    assert isinstance(rig.family, TinyWan)
    return rig.family._components[rig.instance.name]


def opened(
    rig: Rig,
    session: str = "s1",
    seed: int = 7,
    prompt: str = "a lake",
    parameters: Mapping[str, float] | None = None,
) -> LoopDriver[WanState]:
    defaults = {spec.name: spec.default for spec in rig.kernel.spec.parameters}
    request = LoopRequest(session, seed, prompt, {**defaults, **(parameters or {})})
    return rig.open(request, DriverOptions(history_chunks=3))


def pictures(count: int, seed: int = 3) -> Pictures:
    """Return smooth pictures that differ from each other."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 255, (count, HEIGHT // 8, WIDTH // 8, 3), dtype=np.uint8)
    return [each.repeat(8, 0).repeat(8, 1) for each in coarse]


def shown(stream: str, what: Pictures, first: int = 0, *, ends: bool = True) -> list[StreamInput]:
    """Return pictures as a loop gets them: the last one ends a clip, if it does."""
    return [
        StreamInput(
            ControlId(f"{stream}{first + number}"),
            stream,
            MediaInput(first + number, picture, last=ends and number == len(what) - 1),
        )
        for number, picture in enumerate(what)
    ]


def encoded(rig: Rig, what: Pictures) -> Tensor:
    """Return the latents [F, Z, h, w] of a video; its last picture fills the last group."""
    encoder, cache = components_of(rig).encoder, None
    latents = []
    for start in (0, *range(1, len(what), 4)):
        group = what[start : start + (4 if start else 1)]
        group = [*group, *([group[-1]] * (4 - len(group) if start else 0))]
        pixels = torch.from_numpy(np.stack(group)).float() / 127.5 - 1
        latent_BZhw, cache = encoder.encode(pixels[None], cache)
        latents.append(latent_BZhw[0])
    return torch.stack(latents)


def decoded(rig: Rig, latents_FZhw: Tensor) -> NDArray[np.uint8]:
    """Return the pictures of a video, as they go out."""
    decoder, cache = components_of(rig).decoder, None
    made = []
    for latent_Zhw in latents_FZhw:
        pictures_BFHWC, cache = decoder.decode(latent_Zhw[None], cache)
        made.append(pictures_BFHWC[0])
    pixels = (torch.cat(made) / 2 + 0.5).clamp(0, 1) * 255
    return np.asarray(pixels.round().to(torch.uint8))


def frames_out(rig: Rig, since: int = 0, session: str = "s1") -> NDArray[np.uint8]:
    """Return every frame that came out, from chunk number `since` on."""
    return np.concatenate([out.frames for out in rig.frames(session)[since:]])


def kinds(rig: Rig, chunk: int, session: str = "s1") -> list[str]:
    """Return the units up to the end of a chunk, in order."""
    return [unit.kind for unit in rig.units(session) if unit.chunk == chunk]


def applied(rig: Rig, control: str, session: str = "s1") -> int:
    """Return the chunk in which a control acted."""
    found = [each for each in rig.heard_of(session, ControlApplied) if each.control == control]
    [receipt] = found
    return int(receipt.chunk)


def cache_of(rig: Rig, state: WanState) -> Tensor:
    assert rig.instance.blocks is not None
    return rig.instance.blocks.gather(state.blocks)
