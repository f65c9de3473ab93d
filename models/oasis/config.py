"""Sizes of Oasis, and the meaning of its action rows."""

from dataclasses import dataclass

from reverie.models.contract.controls import Drag

ACTIONS = (
    "inventory",
    "ESC",
    *(f"hotbar.{slot}" for slot in range(1, 10)),
    "forward",
    "back",
    "left",
    "right",
    "cameraX",
    "cameraY",
    "jump",
    "sneak",
    "sprint",
    "swapHands",
    "attack",
    "use",
    "pickItem",
    "drop",
)
"""The 25 numbers of an action row, in order: 0 or 1; the two of the camera are -1 to 1."""

CAMERA = {"cameraX": "Pitch", "cameraY": "Yaw"}
"""The camera's two numbers and what they turn: X is pitch, Y is yaw.

The names are those of the recordings (MineRL: `camera` is pitch, then yaw). Down and right are
positive.
"""
DRAGS = {"cameraX": Drag.Y, "cameraY": Drag.X}
"""The direction in which the picture is dragged to turn the camera."""
KEYS = tuple(name for name in ACTIONS if name not in CAMERA)
BINDINGS = {
    "attack": ("MouseLeft",),
    "use": ("MouseRight",),
    "jump": ("Space",),
    "sneak": ("ShiftLeft", "ShiftRight"),
}
"""Keys and mouse buttons of actions whose names are not keys."""


@dataclass(frozen=True, slots=True)
class DitConfig:
    """Sizes of the transformer.

    Attributes:
        channels: of a latent cell.
        height: latent cells down.
        width: latent cells across.
        patch: cells along one side of a token.
        hidden: channels of a token.
        depth: blocks, each with a spatial and a temporal half.
        heads: attention heads.
        mlp: how much wider a feed-forward is.
        actions: numbers of an action row.
        window: frames that a call attends to, including the one in progress.
    """

    channels: int = 16
    height: int = 18
    width: int = 32
    patch: int = 2
    hidden: int = 1024
    depth: int = 16
    heads: int = 16
    mlp: int = 4
    actions: int = len(ACTIONS)
    window: int = 32

    @property
    def head_size(self) -> int:
        """Channels of one head."""
        return self.hidden // self.heads

    @property
    def rows(self) -> int:
        """Tokens down."""
        return self.height // self.patch

    @property
    def columns(self) -> int:
        """Tokens across."""
        return self.width // self.patch


@dataclass(frozen=True, slots=True)
class VaeConfig:
    """Sizes of the picture codec: a transformer on each side.

    Attributes:
        latent: channels of a latent cell.
        rows: cells down; a picture has `rows * patch` pixels.
        columns: cells across.
        patch: pixels along one side of a cell.
        width: channels of a token.
        encoder: blocks of the encoder.
        decoder: blocks of the decoder.
        heads: attention heads.
        scale: factor of the latents.
    """

    latent: int = 16
    rows: int = 18
    columns: int = 32
    patch: int = 20
    width: int = 1024
    encoder: int = 6
    decoder: int = 12
    heads: int = 16
    scale: float = 0.07843137255
