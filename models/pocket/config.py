"""Sizes of the pocket model."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class CodecConfig:
    """Sizes of the codec.

    Attributes:
        cell_px: side of the square of pixels behind one latent cell.
        latent_channels: numbers for one cell.
        encoder_width: hidden channels of the encoder, which mixes no cells.
        decoder_width: channels of the decoder's 3 x 3 convolutions.
        decoder_blocks: residual blocks of the decoder.
    """

    cell_px: int = 8
    latent_channels: int = 8
    encoder_width: int = 256
    decoder_width: int = 128
    decoder_blocks: int = 3


@dataclass(frozen=True, slots=True)
class TextConfig:
    """Sizes of the text encoder.

    Attributes:
        vocabulary: number of word ids, with padding and the unknown word.
        width: channels, and size D of a text embedding.
        heads: attention heads.
        layers: attention layers.
    """

    vocabulary: int
    width: int = 128
    heads: int = 4
    layers: int = 2


@dataclass(frozen=True, slots=True)
class WorldConfig:
    """Sizes of the world model.

    Attributes:
        latent_channels: channels of a latent cell.
        grid: latent cells along one side of a frame.
        patch: cells along one side of a token.
        width: channels of a token.
        heads: attention heads; their size is `width / heads`.
        layers: transformer blocks.
        hidden: channels inside the gated feed-forward.
        condition: channels of the modulation's input.
        text_width: size of a text embedding.
        actions: number of stances of the walker (`walker.stance_of`).
        window: frames that attention sees, with the frame in progress.
        takes_guidance: whether the guidance scale is an input, as in weights that were distilled
            from guided predictions. The shipped weights were not.
    """

    latent_channels: int = 8
    grid: int = 16
    patch: int = 2
    width: int = 256
    heads: int = 4
    layers: int = 6
    hidden: int = 512
    condition: int = 128
    text_width: int = 128
    actions: int = 9
    window: int = 6
    takes_guidance: bool = False

    @property
    def side(self) -> int:
        """Tokens along one side of a frame."""
        return self.grid // self.patch

    @property
    def tokens(self) -> int:
        """Tokens of a frame."""
        return self.side**2

    @property
    def head_size(self) -> int:
        """Channels of one attention head."""
        return self.width // self.heads

    @property
    def cells(self) -> int:
        """Numbers of a frame's latents."""
        return self.latent_channels * self.grid**2


@dataclass(frozen=True, slots=True)
class NarratorConfig:
    """Sizes of the narrator's own parameters, next to the world model's blocks.

    Attributes:
        vocabulary: number of tokens.
        positions: longest text, in tokens.
        rank: of the matrices that text adds to the world model's.
    """

    vocabulary: int
    positions: int
    rank: int = 32


@dataclass(frozen=True, slots=True)
class PocketConfig:
    """Sizes of all networks."""

    text: TextConfig
    narrator: NarratorConfig
    codec: CodecConfig = field(default_factory=CodecConfig)
    world: WorldConfig = field(default_factory=WorldConfig)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for the metadata of a weights file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "PocketConfig":
        """Read what `to_dict` returned."""
        return cls(
            text=TextConfig(**values["text"]),
            narrator=NarratorConfig(**values["narrator"]),
            codec=CodecConfig(**values["codec"]),
            world=WorldConfig(**values["world"]),
        )
