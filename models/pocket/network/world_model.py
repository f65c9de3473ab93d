"""The world model: the next frame's latents from noise, the frame before, an action and a text.

Shapes: B sessions, F frames in progress, P frames in the cache, Z latent channels on a grid
h x w, N tokens of a frame, D channels, T size of a text embedding, L layers, A heads of size d.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from reverie.kernels.attention import AttentionBackend
from reverie.models.pocket.config import WorldConfig
from reverie.models.pocket.network.block import PocketBlock, RotaryAngles
from reverie.models.pocket.network.frame_inputs import FrameCalls, FrameCondition, Past
from reverie.models.pocket.network.noise_features import WAVES, noise_features
from reverie.models.pocket.network.rotary import place_angles, slot_angles, text_angles, turn

LEVEL_FEATURES = 64


@dataclass(frozen=True, slots=True)
class WorldOutput:
    """The output of one call of the world model.

    Attributes:
        clean_BFZhw: predicted clean latents, float32.
        k_BFLAND: keys of every layer, rotated by place only, as a cache keeps them.
        v_BFLAND: values of every layer.
    """

    clean_BFZhw: Tensor
    k_BFLAND: Tensor
    v_BFLAND: Tensor


def level_features(level_BF: Tensor) -> Tensor:
    """Return sines and cosines [B, F, LEVEL_FEATURES] of noise levels in [0, 1]."""
    half = LEVEL_FEATURES // 2
    frequencies = torch.exp(
        math.log(1000.0) * torch.arange(half, device=level_BF.device, dtype=torch.float32) / half
    )
    angles = level_BF.float()[..., None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


class WorldModel(nn.Module):
    """A block-causal transformer over frames that predicts clean latents (x-prediction)."""

    place_cosine: Tensor
    place_sine: Tensor
    slot_cosine: Tensor
    slot_sine: Tensor
    text_cosine: Tensor
    text_sine: Tensor

    def __init__(self, config: WorldConfig) -> None:
        super().__init__()
        self.config = config
        self._frames: FrameCalls | None = None
        cells = config.latent_channels * config.patch**2
        self.enter = nn.Linear(2 * cells, config.width)
        # The weights file has this name: the layer of the noise features.
        self.luck = nn.Linear(WAVES * config.patch**2, config.width, bias=False)
        nn.init.zeros_(self.luck.weight)
        self.places = nn.Parameter(torch.empty(config.tokens, config.width))
        nn.init.normal_(self.places, std=0.02)
        self.actions = nn.Embedding(config.actions, config.condition)
        mixed = LEVEL_FEATURES + config.condition + config.text_width
        self.condition = nn.Sequential(
            nn.Linear(mixed, 2 * config.condition),
            nn.SiLU(),
            nn.Linear(2 * config.condition, config.condition),
            nn.SiLU(),
        )
        self.guidance = nn.Linear(LEVEL_FEATURES, mixed) if config.takes_guidance else None
        self.blocks = nn.ModuleList(PocketBlock(config) for _ in range(config.layers))
        self.leave = nn.Linear(config.width, cells)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)
        with torch.device("cpu"):  # on `meta` they would make torch import its compiler
            angles = {
                "place": place_angles(config.side, config.head_size),
                "slot": slot_angles(config.window, config.head_size),
                "text": text_angles(config.side, config.window, config.head_size),
            }
            for name, each in angles.items():
                self.register_buffer(f"{name}_cosine", each.cos(), persistent=False)
                self.register_buffer(f"{name}_sine", each.sin(), persistent=False)

    def forward(
        self,
        noisy_BFZhw: Tensor,
        level_BF: Tensor,
        previous_BFZhw: Tensor,
        action_BF: Tensor,
        text_BFT: Tensor,
        past: Past | None = None,
        told_B: Tensor | None = None,
    ) -> WorldOutput:
        """Predict the clean latents of F frames that follow the past ones.

        Args:
            noisy_BFZhw: (1 - level) * latents + level * noise.
            level_BF: noise levels in [0, 1], one for each frame.
            previous_BFZhw: clean latents of the frame before; zeros before the first one.
            action_BF: `Action` values.
            text_BFT: text embeddings.
            past: the cache, from `read_past`, only with F = 1; None when there is none.
            told_B: guidance scales, for weights that take one; None is 1.
        """
        dtype = self.enter.weight.dtype
        noisy_BFNC = self.patches(noisy_BFZhw)
        tokens_BFNC = torch.cat([noisy_BFNC, self.patches(previous_BFZhw)], dim=-1)
        pure_BF11 = (level_BF >= 1)[:, :, None, None].to(dtype)
        luck_BFND = self.luck(noise_features(noisy_BFNC, self.config.latent_channels).to(dtype))
        x_BFND = self.enter(tokens_BFNC.to(dtype)) + pure_BF11 * luck_BFND + self.places
        condition_BFC = self.conditioned(level_BF, action_BF, text_BFT, told_B)
        first = 0 if past is None else past.frames
        turns = self._turns(first, first + noisy_BFZhw.shape[1], x_BFND.dtype)
        keys, values = [], []
        for index, block in enumerate(self.blocks):
            output = block(
                x_BFND, condition_BFC, turns, None if past is None else past.layers[index]
            )
            x_BFND = output.x_BFND
            keys.append(output.k_BFAND)
            values.append(output.v_BFAND)
        change = self.leave(functional.layer_norm(x_BFND, (self.config.width,)))
        clean_BFZhw = previous_BFZhw.float() + self.cells(change.float())
        return WorldOutput(clean_BFZhw, torch.stack(keys, dim=2), torch.stack(values, dim=2))

    def conditioned(
        self, level_BF: Tensor, action_BF: Tensor, text_BFT: Tensor, told_B: Tensor | None
    ) -> Tensor:
        """Return the modulation's input [B, F, C]; the arguments are those of `forward`."""
        dtype = self.enter.weight.dtype
        told = torch.cat(
            [level_features(level_BF).to(dtype), self.actions(action_BF), text_BFT.to(dtype)],
            dim=-1,
        )
        if self.guidance is not None:
            scale_BF = torch.ones_like(level_BF) if told_B is None else told_B[:, None]
            told = told + self.guidance(level_features(scale_BF).to(dtype))
        condition_BFC: Tensor = self.condition(told)
        return condition_BFC

    def run_frames_by(self, frames: FrameCalls) -> None:
        """Have `predict`, `remember` and `read` done by another, whose results are the same."""
        self._frames = frames

    def predict(
        self,
        noisy_BZhw: Tensor,
        previous_BZhw: Tensor,
        conditions: Sequence[FrameCondition],
        past: Past | None,
    ) -> Tensor:
        """Return the clean latents [B, Z, h, w] of one frame for each session: a denoise step."""
        if self._frames is not None:
            return self._frames.predict(noisy_BZhw, previous_BZhw, conditions, past)
        return self._forward_rows(noisy_BZhw, previous_BZhw, conditions, past).clean_BFZhw[:, 0]

    def remember(
        self,
        clean_BZhw: Tensor,
        previous_BZhw: Tensor,
        conditions: Sequence[FrameCondition],
        past: Past | None,
    ) -> Tensor:
        """Return keys and values [B, 2, L, A, N, d] of finished frames: a context pass."""
        if self._frames is not None:
            return self._frames.remember(clean_BZhw, previous_BZhw, conditions, past)
        output = self._forward_rows(clean_BZhw, previous_BZhw, conditions, past)
        return torch.stack((output.k_BFLAND[:, 0], output.v_BFLAND[:, 0]), dim=1)

    def read(self, cached_BP2LANd: Tensor) -> Past:
        """Return cached frames, oldest first, for `predict` and `remember`."""
        if self._frames is not None:
            return self._frames.read(cached_BP2LANd)
        keys, values = cached_BP2LANd[:, :, 0].unbind(1), cached_BP2LANd[:, :, 1].unbind(1)
        return self.read_past(keys, values)

    def _forward_rows(
        self,
        noisy_BZhw: Tensor,
        previous_BZhw: Tensor,
        conditions: Sequence[FrameCondition],
        past: Past | None,
    ) -> WorldOutput:
        device = noisy_BZhw.device
        return self.forward_frame(
            noisy_BZhw,
            torch.tensor([each.level for each in conditions], device=device),
            previous_BZhw,
            torch.tensor([each.stance for each in conditions], device=device),
            torch.stack([each.text_T for each in conditions]),
            past,
            torch.tensor([each.told for each in conditions], device=device),
        )

    def read_past(self, k_blocks: Sequence[Tensor], v_blocks: Sequence[Tensor]) -> Past:
        """Return cached frames, oldest first, for `forward`.

        Args:
            k_blocks: one entry for each frame, [B, L, A, N, d], as in `WorldOutput` without its F.
            v_blocks: the same for values.
        """
        config = self.config
        frames = len(k_blocks)
        k = torch.stack(tuple(k_blocks), dim=3)  # [B, L, A, P, N, d]
        v = torch.stack(tuple(v_blocks), dim=3)
        cosine, sine = self.slot_cosine[:frames, None], self.slot_sine[:frames, None]
        k = turn(k, cosine.to(k.dtype), sine.to(k.dtype)).flatten(3, 4)
        v = v.flatten(3, 4)
        layers = tuple((k[:, layer], v[:, layer]) for layer in range(config.layers))
        return Past(frames, layers)

    def attend_with(self, backend: AttentionBackend) -> None:
        """Use another attention backend for frames; the result stays the same."""
        for block in self.stack():
            block.attention.attend = backend

    def forward_frame(
        self,
        noisy_BZhw: Tensor,
        level_B: Tensor,
        previous_BZhw: Tensor,
        action_B: Tensor,
        text_BT: Tensor,
        past: Past | None,
        told_B: Tensor | None = None,
    ) -> WorldOutput:
        """Run `forward` on one frame for each session; the outputs keep F = 1.

        The same call serves as a denoise step (keys and values are dropped) and as the context pass
        on the clean frame (they become the frame's cache block).
        """
        return self.forward(
            noisy_BZhw[:, None],
            level_B[:, None],
            previous_BZhw[:, None],
            action_B[:, None],
            text_BT[:, None],
            past,
            told_B,
        )

    def stack(self) -> Iterator[PocketBlock]:
        """Return the blocks in order, for the narrator."""
        for block in self.blocks:
            assert isinstance(block, PocketBlock), "the stack holds nothing else"
            yield block

    def text_angle(self, frames: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return cosine and sine [d/2] of text after `frames` cached frames.

        Its slot is the one after them, its place the middle of the picture.
        """
        return self.text_cosine[frames].to(dtype), self.text_sine[frames].to(dtype)

    def _turns(self, first: int, end: int, dtype: torch.dtype) -> RotaryAngles:
        return RotaryAngles(
            self.place_cosine.to(dtype),
            self.place_sine.to(dtype),
            self.slot_cosine[first:end, None, None].to(dtype),
            self.slot_sine[first:end, None, None].to(dtype),
        )

    def patches(self, x_BFZhw: Tensor) -> Tensor:
        """Cut latents into tokens: [B, F, N, Z * patch * patch]."""
        B, frames, Z, _, _ = x_BFZhw.shape
        side, patch = self.config.side, self.config.patch
        cut = x_BFZhw.reshape(B, frames, Z, side, patch, side, patch)
        return cut.permute(0, 1, 3, 5, 2, 4, 6).reshape(B, frames, side * side, -1)

    def cells(self, x_BFNC: Tensor) -> Tensor:
        """Undo `patches`."""
        B, frames = x_BFNC.shape[:2]
        side, patch, grid = self.config.side, self.config.patch, self.config.grid
        cut = x_BFNC.view(B, frames, side, side, -1, patch, patch)
        return cut.permute(0, 1, 4, 2, 5, 3, 6).reshape(B, frames, -1, grid, grid)
