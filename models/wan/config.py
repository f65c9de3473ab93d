"""Sizes of the Wan transformer, and the block-by-block settings of its causal versions.

Source: the public configurations of Wan 2.1 (1.3B, 14B), Self-Forcing and LongLive 1.0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from math import isfinite
from typing import Any

TIMES = 1000
"""Timesteps of pure noise."""

GRID = (60, 104)
"""Rows and columns of the latents: 480 x 832 pixels."""
CELL_PX = 8
RANDOM = "random"
"""The checkpoint name for tiny random weights."""


@dataclass(frozen=True, slots=True)
class WanConfig:
    """Sizes of the transformer; the names are those of the public `config.json`.

    Attributes:
        dim: channels of a token.
        ffn_dim: channels inside a feed-forward.
        num_heads: attention heads; their size is `dim / num_heads`.
        num_layers: transformer blocks.
        in_dim: channels of the latents that go in.
        out_dim: channels of the flow that comes out.
        text_len: rows of an encoded prompt, padding included.
        text_dim: channels of an encoded prompt.
        freq_dim: channels of the time features.
        patch: latent cells along one side of a token; in time a token is one latent frame.
        eps: of every norm.
        takes_guidance: whether the guidance scale is an input, as in weights that were distilled
            from guided predictions. No public ones are known.
    """

    dim: int = 1536
    ffn_dim: int = 8960
    num_heads: int = 12
    num_layers: int = 30
    in_dim: int = 16
    out_dim: int = 16
    text_len: int = 512
    text_dim: int = 4096
    freq_dim: int = 256
    patch: int = 2
    eps: float = 1e-6
    takes_guidance: bool = False

    @property
    def head_size(self) -> int:
        """Channels of one attention head."""
        return self.dim // self.num_heads

    @classmethod
    def from_public(cls, values: Mapping[str, Any]) -> "WanConfig":
        """Read the sizes in a public `config.json`; other fields are ignored.

        Raises:
            ValueError: it belongs to another kind of model, or sizes contradict each other.
        """
        if values.get("model_type", "t2v") != "t2v":
            raise ValueError(f"model_type must be t2v, not {values['model_type']!r}")
        patch = tuple(values.get("patch_size", (1, 2, 2)))
        if len(patch) != 3 or patch[0] != 1 or patch[1] != patch[2]:
            raise ValueError(f"patch_size must be (1, n, n), not {patch}")
        known = {field.name for field in fields(cls)} - {"patch"}
        config = cls(**{key: values[key] for key in known & values.keys()}, patch=patch[1])
        if config.num_heads < 1:
            raise ValueError(f"num_heads must be a whole number from 1, not {config.num_heads}")
        if config.dim % config.num_heads or config.head_size % 2:
            channels = f"the {config.dim} channels evenly"
            raise ValueError(f"num_heads must divide {channels}, not {config.num_heads}")
        return config


T2V_1_3B = WanConfig()
T2V_14B = WanConfig(dim=5120, ffn_dim=13824, num_heads=40, num_layers=40)


@dataclass(frozen=True, slots=True)
class CausalConfig:
    """How video is made block by block, and which frames a block attends to.

    Attributes:
        block: latent frames that are denoised together.
        local: latent frames that attention sees, including the block in progress and the sink.
        sink: the first latent frames of the video, which never leave the window.
        levels: the timesteps of the denoise calls, before the warp by `shift`.
        shift: of the noise schedule.
        context_level: the timestep that the context pass is given; no noise is added.
        recache: whether a new prompt recomputes the keys and values of the window (LongLive).
        global_sink: whether a recache keeps the sink's keys and values.
        first_alone: whether the first block is a single frame.
        positions: how far frames are numbered before the window is renumbered from 0; the public
            models support no higher numbers.
    """

    block: int = 3
    local: int = 21
    sink: int = 0
    levels: tuple[int, ...] = (1000, 750, 500, 250)
    shift: float = 5.0
    context_level: float = 0.0
    recache: bool = False
    global_sink: bool = True
    first_alone: bool = False
    positions: int = 1024

    def __post_init__(self) -> None:
        """Refuse sizes that contradict each other.

        Raises:
            ValueError: names the sizes that contradict each other.
        """
        self._require_types()
        if min(self.block, self.local) < 1 or self.sink < 0 or not self.levels:
            raise ValueError(
                "block, local and the number of levels must be at least 1, and sink at least 0"
            )
        if self.local < self.sink + self.block:
            raise ValueError(
                f"local must be at least sink + block: {self.local} frames cannot hold a sink of "
                f"{self.sink} and a block of {self.block}"
            )
        if self.positions < self.sink + self.local + self.block:
            raise ValueError(
                f"positions must be at least sink + local + block, not {self.positions}"
            )

    def _require_types(self) -> None:
        for name in ("block", "local", "sink", "positions"):
            if type(value := getattr(self, name)) is not int:
                raise ValueError(f"{name} must be a whole number, not {value!r}")
        for name in ("recache", "global_sink", "first_alone"):
            if type(value := getattr(self, name)) is not bool:
                raise ValueError(f"{name} must be true or false, not {value!r}")
        for name in ("shift", "context_level"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not isfinite(value):
                raise ValueError(f"{name} must be a number, not {value!r}")
        if self.shift <= 0 or not 0 <= self.context_level <= TIMES:
            raise ValueError(f"shift must be above 0, and context_level 0 to {TIMES}")
        self._require_levels()

    def _require_levels(self) -> None:
        levels = self.levels
        whole = isinstance(levels, tuple) and all(type(level) is int for level in levels)
        falling = whole and all(high > low for high, low in pairwise(levels))
        if not falling or not all(0 <= level <= TIMES for level in levels):
            given = list(levels) if isinstance(levels, tuple) else levels
            wanted = f"a list of descending whole numbers from {TIMES} to 0"
            raise ValueError(f"levels must be {wanted}, not {given!r}")


SELF_FORCING = CausalConfig()
LONGLIVE = CausalConfig(local=12, sink=3, recache=True)
