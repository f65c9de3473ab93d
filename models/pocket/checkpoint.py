"""Weights files: four networks in one safetensors file, with the metadata to rebuild them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from reverie.models.contract.errors import CheckpointError
from reverie.models.pocket.config import PocketConfig
from reverie.models.pocket.narration.vocabulary import NarrationVocabulary
from reverie.models.pocket.network.codec import PictureCodec
from reverie.models.pocket.network.narrator import Narrator
from reverie.models.pocket.network.networks import PocketNets, fast_dtype
from reverie.models.pocket.network.text_encoder import TextEncoder
from reverie.models.pocket.network.vocabulary import Vocabulary
from reverie.models.pocket.network.world_model import WorldModel
from reverie.models.services.checkpoint_report import CheckpointReport, of_fault
from reverie.models.services.checkpoints import CheckpointManifest, inspect
from reverie.models.services.uninitialised import uninitialised

__all__ = [
    "SHIPPED_WEIGHTS",
    "PocketNets",
    "PocketParts",
    "TrainingRecord",
    "load_pocket",
    "save_pocket",
    "weights_version",
]

SHIPPED_WEIGHTS = Path(__file__).parent / "weights" / "pocket.safetensors"
FORMAT = "reverie.pocket/2"
LAYOUT = CheckpointManifest("pocket", ())


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """The seed and the numbers of steps that the weights were trained with."""

    seed: int
    codec_steps: int
    world_steps: int


@dataclass(frozen=True, slots=True)
class PocketParts:
    """The content of a weights file: networks, sizes, vocabularies."""

    codec: PictureCodec
    text: TextEncoder
    world: WorldModel
    narrator: Narrator
    config: PocketConfig
    vocabulary: Vocabulary
    narration: NarrationVocabulary

    def networks(self) -> dict[str, nn.Module]:
        """Return the networks by the prefix of their tensors' names."""
        return {
            "codec": self.codec,
            "text": self.text,
            "world": self.world,
            "narrator": self.narrator,
        }


def weights_version(tensors: Mapping[str, Tensor]) -> str:
    """Hash names, shapes and bytes of all tensors: 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        digest.update(tensor.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def save_pocket(path: Path, parts: PocketParts, record: TrainingRecord) -> str:
    """Write a weights file in bfloat16 (the latents' statistics in float32); return its version."""
    tensors: dict[str, Tensor] = {}
    for prefix, module in parts.networks().items():
        for name, tensor in module.state_dict().items():
            kept = torch.float32 if name.startswith("latent_") else torch.bfloat16
            tensors[f"{prefix}.{name}"] = tensor.detach().cpu().to(kept).contiguous()
    version = weights_version(tensors)
    metadata = {
        "format": FORMAT,
        "config": json.dumps(parts.config.to_dict()),
        "vocabulary": json.dumps(parts.vocabulary.words),
        "narration": json.dumps(parts.narration.words),
        "seed": str(record.seed),
        "codec_steps": str(record.codec_steps),
        "world_steps": str(record.world_steps),
        "version": version,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    save_file(tensors, partial, metadata)
    partial.replace(path)
    return version


def check_pocket(path: Path, window: int) -> CheckpointReport:
    """Compare a weights file with the networks that it describes; only the header is read.

    Args:
        path: the file.
        window: the window that the networks must have, in frames.

    Raises:
        CheckpointError: the file cannot be read, or is not of this format.
    """
    if path.is_dir():
        raise CheckpointError(f"{path} is a folder: name the weights file")
    stored = LAYOUT.tensors((path,))
    if path.suffix != ".safetensors":
        raise CheckpointError(f"{path} is not a safetensors file")
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
    with torch.device("meta"), uninitialised():
        parts = _parts(path, metadata)
    report = inspect(LAYOUT.layout, stored, nn.ModuleDict(parts.networks()))
    if (sees := parts.config.world.window) != window:
        fault = CheckpointError(f"these weights have a window of {sees} frames, not {window}")
        report = report.joined(of_fault(fault))
    return report.of_part("weights", path.parent, (path,))


def _parts(path: Path, metadata: Mapping[str, str]) -> PocketParts:
    """Make the networks that a weights file describes, with untrained weights."""
    if metadata.get("format") != FORMAT:
        raise CheckpointError(f"{path} holds {metadata.get('format')!r}, not {FORMAT!r}")
    try:
        config = PocketConfig.from_dict(json.loads(metadata["config"]))
        return PocketParts(
            PictureCodec(config.codec),
            TextEncoder(config.text),
            WorldModel(config.world),
            Narrator(config.narrator, config.world),
            config,
            Vocabulary(tuple(json.loads(metadata["vocabulary"]))),
            NarrationVocabulary(tuple(json.loads(metadata["narration"]))),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        why = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise CheckpointError(f"{path}: its metadata is not valid: {why}") from error


def load_pocket(
    path: Path | None = None,
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> PocketNets:
    """Build the networks from a weights file.

    Args:
        path: None takes the shipped weights.
        device: None takes the CPU.
        dtype: precision of codec, world model and narrator; None takes bfloat16 where the device
            multiplies it fast, else float32.

    Raises:
        FileNotFoundError: the file is missing.
        CheckpointError: the file is not of this format.
    """
    path = SHIPPED_WEIGHTS if path is None else path
    device = torch.device("cpu") if device is None else device
    dtype = fast_dtype(device) if dtype is None else dtype
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    with uninitialised():
        parts = _parts(path, metadata)
    for prefix, module in parts.networks().items():
        own = {n: t for n, t in tensors.items() if n.startswith(f"{prefix}.")}
        module.load_state_dict({n.removeprefix(f"{prefix}."): t for n, t in own.items()})
        module.to(device).eval().requires_grad_(False)
    parts.codec.to(dtype).channels_last()
    parts.world.to(dtype)
    parts.narrator.to(dtype)
    return PocketNets(
        parts.codec,
        parts.text,
        parts.world,
        parts.narrator,
        parts.vocabulary,
        parts.narration,
        parts.config,
        metadata["version"],
        device,
        dtype,
    )
