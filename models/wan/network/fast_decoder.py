"""A tiny decoder of Wan latents: many times faster than the VAE's, and a little less exact.

The architecture is that of the public TAEHV family (`taew2_1`), with its names of tensors. It reads
normalised latents. Every layer works on one frame; memory blocks also take the previous frame, at
their own level. So a session keeps the last input of each memory block.

Shapes: B videos, F frames, C channels, Z latent channels on a grid h x w.
"""

from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from reverie.models.contract.errors import CheckpointError
from reverie.models.services.checkpoint_report import CheckpointReport
from reverie.models.services.checkpoints import CheckpointManifest, StoredTensor, fill, inspect
from reverie.models.wan.network.features import FIRST_GROUP, FeatureCache

LAYOUT = CheckpointManifest(
    "TAEHV",
    ("taew2_1.safetensors", "taew2_1.pth"),
    lambda name: name if name.startswith("decoder.") else None,  # the encoder is not used
)
WIDTHS = (256, 128, 64, 64)
"""Channels of the three levels, and before the picture."""
GROWTH = (1, 2, 2)
"""Frames that one becomes behind each level."""
MEMORIES = 3
"""Memory blocks of a level."""
LATENT_CHANNELS = 16
_RANGE = 3.0
_LEVEL_LAYERS = MEMORIES + 3
_FIRST_LAYERS = 3


class SoftClamp(nn.Module):
    """Keeps latents within a range without an edge."""

    def forward(self, x: Tensor) -> Tensor:
        """Limit to -3..3."""
        return torch.tanh(x / _RANGE) * _RANGE


class MemoryBlock(nn.Module):
    """A residual block that takes its input of the previous frame as well."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(2 * width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
        )

    def forward(self, x_BFChw: Tensor, before_BChw: Tensor) -> Tensor:
        """Return frames of the same shape.

        Args:
            x_BFChw: frames that follow each other.
            before_BChw: the one before them.
        """
        past = torch.cat([before_BChw[:, None], x_BFChw[:, :-1]], dim=1)
        seen = torch.cat([x_BFChw, past], dim=2).flatten(0, 1)
        change: Tensor = self.conv(seen)
        return functional.relu(change.view_as(x_BFChw) + x_BFChw)


class TemporalGrow(nn.Module):
    """Makes several frames of one."""

    def __init__(self, width: int, times: int) -> None:
        super().__init__()
        self.times = times
        self.conv = nn.Conv2d(width, width * times, 1, bias=False)

    def forward(self, x_NChw: Tensor) -> Tensor:
        """Return `times` frames in place of each, in their order."""
        grown_NChw: Tensor = self.conv(x_NChw)
        frames, _, height, width = grown_NChw.shape
        return grown_NChw.reshape(frames * self.times, -1, height, width)


class TinyDecoder(nn.Module):
    """The network; `decoder` counts its layers as the public files do."""

    def __init__(self, widths: tuple[int, ...] = WIDTHS, channels: int = LATENT_CHANNELS) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            SoftClamp(),
            nn.Conv2d(channels, widths[0], 3, padding=1),
            nn.ReLU(),
        ]
        for level, times in enumerate(GROWTH):
            width, narrower = widths[level], widths[level + 1]
            layers += [MemoryBlock(width) for _ in range(MEMORIES)]
            layers += [nn.Upsample(scale_factor=2), TemporalGrow(width, times)]
            layers.append(nn.Conv2d(width, narrower, 3, padding=1, bias=False))
        layers += [nn.ReLU(), nn.Conv2d(widths[-1], 3, 3, padding=1)]
        self.decoder = nn.ModuleList(layers)

    def forward(
        self, latents_BZhw: Tensor, memories: tuple[Tensor, ...] | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Decode one latent frame of each video.

        Args:
            latents_BZhw: normalised.
            memories: what the frame before has left; None: there was none.

        Returns:
            Pictures [B, F, 3, H, W], 0 to 1 and not clamped, as many as `GROWTH` makes; and the
            memories for the next.
        """
        x_BFChw = latents_BZhw[:, None]
        left: list[Tensor] = []
        for layer in self.decoder:
            if isinstance(layer, MemoryBlock):
                newest = x_BFChw[:, -1]
                before = torch.zeros_like(newest) if memories is None else memories[len(left)]
                x_BFChw = layer(x_BFChw, before)
                left.append(newest)
            else:
                x_NChw: Tensor = layer(x_BFChw.flatten(0, 1))
                x_BFChw = x_NChw.view(len(latents_BZhw), -1, *x_NChw.shape[1:])
        return x_BFChw, tuple(left)


class FastDecoder:
    """Decodes for many sessions in place of the VAE's decoder; holds nothing of any of them."""

    def __init__(self, network: TinyDecoder) -> None:
        """Use a network that is loaded."""
        self._network = network
        weight = next(network.parameters())
        self._device, self._dtype = weight.device, weight.dtype

    @torch.no_grad()
    def decode(
        self, latents_BZhw: Tensor, cache: FeatureCache | None
    ) -> tuple[Tensor, FeatureCache]:
        """Decode the next latent frame of each of B videos; see `StreamingVae.decode`.

        Returns:
            Pictures [B, F, H, W, 3], -1 to 1, float32; and the next cache. Of a video's first
            latent frame there is one: what comes before it has seen too little.
        """
        memories = None if cache is None else tuple(_tensors(cache))
        latents = latents_BZhw.to(self._device, self._dtype)
        pictures_BFCHW, left = self._network(latents, memories)
        if cache is None:
            pictures_BFCHW = pictures_BFCHW[:, -FIRST_GROUP:]
        pictures = pictures_BFCHW.float().clamp(0, 1) * 2 - 1
        return pictures.permute(0, 1, 3, 4, 2), left


def load_fast_decoder(path: Path, device: torch.device, dtype: torch.dtype) -> FastDecoder:
    """Load the weights of a file, or those that lie in a folder.

    Raises:
        CheckpointError: there are none, or they do not fit.
    """
    stored = _found(path)
    check(path).require_fit()
    with torch.device("meta"):
        network = TinyDecoder(_widths(path, stored))
    fill(network, stored, device, dtype)
    return FastDecoder(network)


def random_fast_decoder(seed: int = 0) -> FastDecoder:
    """Make a narrow one that has learnt nothing; the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        network = TinyDecoder((8, 8, 4, 4))
    return FastDecoder(network.eval().requires_grad_(False))


def holds_fast_decoder(path: Path) -> bool:
    """Tell whether a file is named like a decoder of this kind."""
    return path.is_file() and path.name in LAYOUT.files


def check(path: Path) -> CheckpointReport:
    """Compare a file with the network that it implies; only headers are read.

    Raises:
        CheckpointError: it is none.
    """
    stored = _found(path)
    with torch.device("meta"):
        return inspect(LAYOUT.layout, stored, TinyDecoder(_widths(path, stored)))


def _found(path: Path) -> dict[str, StoredTensor]:
    files = (path,) if path.is_file() else LAYOUT.find(path)
    if not files:
        raise CheckpointError(f"{path} contains no fast decoder: {' or '.join(LAYOUT.files)}")
    stored = LAYOUT.tensors(files[:1])
    for level, times in enumerate(GROWTH):
        _cut(stored, _growth_name(level), times)
    return stored


def _cut(stored: dict[str, StoredTensor], name: str, times: int) -> None:
    """Take the last rows of a growth that makes more frames than are wanted of it."""
    kept = stored.get(name)
    if kept is None or len(kept.shape) != 4:
        return
    wanted = kept.shape[1] * times
    if kept.shape[0] > wanted:
        shape = (wanted, *kept.shape[1:])
        stored[name] = StoredTensor(shape, kept.dtype, lambda: kept.read()[-wanted:].clone())


def _growth_name(level: int) -> str:
    return f"decoder.{_FIRST_LAYERS + _LEVEL_LAYERS * level + MEMORIES + 1}.conv.weight"


def _widths(path: Path, stored: dict[str, StoredTensor]) -> tuple[int, ...]:
    """Return the channels that a file's convolutions have."""
    names = ["decoder.1.weight"]
    names += [f"decoder.{_FIRST_LAYERS + _LEVEL_LAYERS * (n + 1) - 1}.weight" for n in range(3)]
    try:
        return tuple(stored[name].shape[0] for name in names)
    except (KeyError, IndexError) as error:
        raise CheckpointError(f"{path} is not a fast decoder: it has no {error}") from error


def _tensors(cache: FeatureCache) -> Iterable[Tensor]:
    for slot in cache:
        assert isinstance(slot, Tensor), "the features of a fast decoder are tensors"
        yield slot
