"""The public loops of causal Wan as they are written: one session, no driver, a cache of slots.

The rules are those of the facts, in frames: what is kept is moved when the window is full, a call
writes where it stands, and attends to everything that is left. It shares the network with the
family and nothing else of it.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from reverie.models.wan.components import WanComponents
from reverie.models.wan.config import CausalConfig
from reverie.models.wan.network.block import KeysAndValues
from reverie.models.wan.network.transformer import CallOutput, Prompt


class SlotCache:
    """The public rule, a slot a frame: two ends, a roll when the window is full."""

    def __init__(self, local: int, sink: int) -> None:
        self.local, self.sink = local, sink
        self.slots: list[int | None] = [None] * local
        self.global_end = self.local_end = 0

    def call(self, start: int, new: int) -> list[int | None]:
        """Write frames start .. start + new, and return what is attended to."""
        end = start + new
        evicted = 0
        if end > self.global_end and new + self.local_end > self.local:
            evicted = new + self.local_end - self.local
            keep = self.local_end - evicted - self.sink
            moved = self.slots[self.sink + evicted : self.sink + evicted + keep]
            self.slots[self.sink : self.sink + keep] = moved
        self.local_end += end - self.global_end - evicted
        self.slots[self.local_end - new : self.local_end] = list(range(start, end))
        self.global_end = end
        return self.slots[max(0, self.local_end - self.local) : self.local_end]


@dataclass
class BareWan:
    """One video, block by block.

    Attributes:
        latents: final frames, [Z, h, w] each.
        keys: what the newest clean call of each frame left, [2, L, N, A, d].
    """

    components: WanComponents
    seed: int
    prompt: str
    latents: list[Tensor] = field(default_factory=list)
    keys: dict[int, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.causal: CausalConfig = self.components.causal
        self.cache = SlotCache(self.causal.local, self.causal.sink)
        self.text = self._read(self.prompt)
        even = torch.linspace(1, 0, 1001)[:-1]
        self.sigmas = self.causal.shift * even / (1 + (self.causal.shift - 1) * even)

    def give(self, latents: Tensor) -> None:
        """Make given latents the beginning of the video, in blocks."""
        rest = list(latents)
        while rest:
            size = self._size()
            self._context(torch.stack(rest[:size]))
            rest = rest[size:]

    def switch(self, prompt: str) -> None:
        """Go on under another prompt."""
        self.text = self._read(prompt)
        end = len(self.latents)
        count = min(self.causal.local, end)
        if not self.causal.recache or not count:
            return
        first = end - count
        held = self.causal.sink if self.causal.global_sink and end > self.causal.local else 0
        kept = self.cache.slots[:held]
        x = torch.stack(self.latents[first:])
        output = self._forward(x, self.causal.context_level, first, kept, held)
        for index in range(held, count):
            self.keys[first + index] = output.kv_BFLNAd[0, index]
        if not held:
            self.cache.slots[:count] = list(range(first, end))

    def block(self) -> Tensor:
        """Make the next block; return its latents."""
        start, size = len(self.latents), self._size()
        shape = (size, self.components.transformer.config.in_dim, *self.components.grid)
        x = self.components.noise.first(self.seed, start, shape)
        steps = [float(self._table(level)) for level in self.causal.levels]
        for step, timestep in enumerate(steps):
            seen = self.cache.call(start, size)
            past = [number for number in seen if number is None or number < start]
            flow = self._forward(x, timestep, start, past).flow_BFZhw[0]
            clean = (x.double() - self._sigma(timestep) * flow.double()).float()
            if step + 1 < len(steps):
                sigma = self._sigma(steps[step + 1])
                noise = self.components.noise.again(self.seed, start, step + 1, shape)
                x = (1 - sigma) * clean + sigma * noise
        self._context(clean)
        return clean

    def _context(self, clean: Tensor) -> None:
        start = len(self.latents)
        seen = self.cache.call(start, len(clean))
        past = [number for number in seen if number is None or number < start]
        output = self._forward(clean, self.causal.context_level, start, past)
        for index in range(len(clean)):
            self.keys[start + index] = output.kv_BFLNAd[0, index]
        self.latents += list(clean)

    def _forward(
        self, x: Tensor, timestep: float, start: int, past: list[int | None], mute: int = 0
    ) -> CallOutput:
        levels = torch.full((1, len(x)), timestep)
        output: CallOutput = self.components.transformer(
            x[None], levels, self.text, self._past(past), (start,), mute
        )
        return output

    def _past(self, numbers: list[int | None]) -> tuple[KeysAndValues, ...] | None:
        kept = [self.keys[number] for number in numbers if number is not None]
        assert len(kept) == len(numbers), "an empty slot is attended to"
        if not kept:
            return None
        layers = range(kept[0].shape[1])
        joined = [torch.cat([frame[:, layer] for frame in kept], dim=1) for layer in layers]
        return tuple(KeysAndValues(*(kv.transpose(1, 2))[:, None]) for kv in joined)

    def _read(self, prompt: str) -> Prompt:
        return self.components.transformer.read_prompt(self.components.text.encode(prompt)[None])

    def _size(self) -> int:
        return 1 if self.causal.first_alone and not self.latents else self.causal.block

    def _table(self, level: int) -> Tensor:
        return torch.cat([self.sigmas * 1000, torch.zeros(1)])[1000 - level]

    def _sigma(self, timestep: float) -> float:
        return float(self.sigmas[(self.sigmas * 1000 - timestep).abs().argmin()])
