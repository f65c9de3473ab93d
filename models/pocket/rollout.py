"""The bare loop: frames one after another without the runtime, for evaluation and benchmarks.

Shapes: B sessions, Z latent channels on a grid h x w, H = W = 128 pixels, T size of a text
embedding.
"""

from collections import deque
from itertools import pairwise

import torch
from torch import Tensor

from reverie.models.pocket.nets import PocketNets
from reverie.models.pocket.sampler import CONTEXT_LEVEL, TEMPERATURE, next_point
from reverie.models.pocket.world import FrameOutput


class Rollout:
    """Walk B worlds in step with each other from their first frames.

    Args:
        nets: the networks.
        first_frames_BHWC: uint8 pictures.
        generator: of all noise, on the CPU.
        levels: noise levels of the denoise calls, from 1 down; the clean end is not among them.
    """

    def __init__(
        self,
        nets: PocketNets,
        first_frames_BHWC: Tensor,
        generator: torch.Generator,
        levels: tuple[float, ...],
    ) -> None:
        self._nets, self._generator, self._levels = nets, generator, levels
        count, past = len(first_frames_BHWC), nets.config.world.window - 1
        self._keys: deque[Tensor] = deque(maxlen=past)
        self._values: deque[Tensor] = deque(maxlen=past)
        self.latents_BZhw = nets.encode(first_frames_BHWC)
        empty = nets.embed([nets.vocabulary.encode("")] * count)
        wait = torch.zeros(count, dtype=torch.long, device=nets.device)
        self._remember(torch.zeros_like(self.latents_BZhw), wait, empty)

    def step(self, action_B: Tensor, text_BT: Tensor) -> Tensor:
        """Make the next frame of every world: uint8 [B, H, W, 3]."""
        previous_BZhw = self.latents_BZhw
        noise = TEMPERATURE * torch.randn(previous_BZhw.shape, generator=self._generator)
        point_BZhw = noise.to(self._nets.device)
        for level, next_level in pairwise((*self._levels, 0.0)):
            output = self._call(point_BZhw, level, previous_BZhw, action_B, text_BT)
            point_BZhw = next_point(point_BZhw, output.clean_BFZhw[:, 0], level, next_level)
        self.latents_BZhw = point_BZhw
        frames_BHWC = self._nets.decode(point_BZhw)
        self._remember(previous_BZhw, action_B, text_BT)
        return frames_BHWC

    def _remember(self, previous_BZhw: Tensor, action_B: Tensor, text_BT: Tensor) -> None:
        output = self._call(self.latents_BZhw, CONTEXT_LEVEL, previous_BZhw, action_B, text_BT)
        self._keys.append(output.k_BFLAND[:, 0])
        self._values.append(output.v_BFLAND[:, 0])

    @torch.inference_mode()
    def _call(
        self,
        point_BZhw: Tensor,
        level: float,
        previous_BZhw: Tensor,
        action_B: Tensor,
        text_BT: Tensor,
    ) -> FrameOutput:
        world = self._nets.world
        past = world.read_past(self._keys, self._values) if self._keys else None
        level_B = torch.full((len(point_BZhw),), level, device=self._nets.device)
        return world.forward_frame(point_BZhw, level_B, previous_BZhw, action_B, text_BT, past)
