"""A checkpoint of Oasis: its files, compared with the networks and then loaded."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.seeds import Draw, normal
from reverie.models.oasis.components import OasisComponents
from reverie.models.oasis.config import DitConfig, VaeConfig
from reverie.models.oasis.network.transformer import OasisTransformer
from reverie.models.oasis.network.vae import OasisVae
from reverie.models.oasis.sampler import Ddim
from reverie.models.services.checkpoint_report import CheckpointReport, of_fault
from reverie.models.services.checkpoints import CheckpointManifest, fill, inspect
from reverie.models.services.start_pictures import check_starts, read_starts
from reverie.models.services.weight_files import CheckpointPaths, one_network

STEPS = 10
"""Denoise calls of a frame."""
TINY_DIT = DitConfig(height=4, width=6, hidden=32, depth=2, heads=2, window=5)
TINY_VAE = VaeConfig(rows=4, columns=6, patch=8, width=32, encoder=1, decoder=1, heads=2)
TINY_STEPS = 3


def _own_name(name: str) -> str | None:
    """Return the name of a tensor; None for the rotary angles, which are computed."""
    return None if "rotary" in name else name


WEIGHTS = {
    "transformer": CheckpointManifest("Oasis 500M", ("oasis500m*.safetensors",), _own_name),
    "vae": CheckpointManifest("ViT-VAE 20", ("vit-l-20*.safetensors",), _own_name),
}
NAMES = {"transformer": "transformers", "vae": "VAEs"}
"""The plural of a part, for errors."""


@dataclass(frozen=True, slots=True)
class _NetworkContents:
    files: tuple[Path, ...]
    report: CheckpointReport
    model: torch.nn.Module
    stored: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _CheckpointContents:
    networks: tuple[_NetworkContents, ...]
    report: CheckpointReport


@dataclass(frozen=True, slots=True)
class OasisCheckpoints:
    """Checks and loads checkpoints of these sizes."""

    dit: DitConfig
    vae: VaeConfig
    draw: Draw

    def look(self, places: CheckpointPaths) -> _CheckpointContents:
        """Check all parts, before any is read."""
        networks = [self._find(places.checkpoint, "transformer")]
        report = networks[0].report
        if WEIGHTS["vae"].find(places.parts):
            try:
                networks.append(self._find(places.parts, "vae"))
                report = report.joined(networks[1].report)
            except CheckpointError as fault:
                report = report.joined(of_fault(fault))
        else:
            lacking = f"the VAE ({' or '.join(WEIGHTS['vae'].files)})"
            report = replace(report, lacking=(lacking,))
        return _CheckpointContents(tuple(networks), report.joined(check_starts(places.parts)))

    def _find(self, place: Path, part: str) -> _NetworkContents:
        manifest = WEIGHTS[part]
        if not place.exists():
            raise CheckpointError(f"{place}: no such file or folder")
        files = (place,) if place.is_file() else manifest.find(place)
        if not files:
            raise CheckpointError(f"{place} has no {' or '.join(manifest.files)}")
        folder = files[0].parent
        files = one_network(folder, NAMES[part], files)
        stored = manifest.tensors(files)
        with torch.device("meta"):
            model = OasisTransformer(self.dit) if part == "transformer" else OasisVae(self.vae)
        report = inspect(manifest.layout, stored, model)
        if part == "vae" and not report.matched:
            raise CheckpointError(f"{files[0]} is not a VAE of Oasis: none of its tensors match")
        return _NetworkContents(files, report.of_part(part, folder, files), model, stored)

    def load(
        self, places: CheckpointPaths, device: torch.device, dtype: torch.dtype
    ) -> tuple[OasisComponents, str]:
        """Load a checkpoint that fits; return it with the version of its weights."""
        found = self.look(places)
        found.report.require_fit()
        for network in found.networks:
            fill(network.model, network.stored, device, dtype)
        transformer, vae = (network.model for network in found.networks)
        assert isinstance(transformer, OasisTransformer)
        assert isinstance(vae, OasisVae)
        width, height = vae.config.columns * vae.config.patch, vae.config.rows * vae.config.patch
        starts = read_starts(places.parts, width, height)
        files = [file.stat() for network in found.networks for file in network.files]
        version = "-".join(f"{file.st_size:x}.{file.st_mtime_ns:x}" for file in files)
        return OasisComponents(transformer, vae, Ddim.of(STEPS), starts, self.draw), version


def random_components(device: torch.device, seed: int = 0) -> OasisComponents:
    """Make a tiny Oasis with random weights; the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        transformer, vae = OasisTransformer(TINY_DIT), OasisVae(TINY_VAE)
    side = (3, TINY_VAE.rows * TINY_VAE.patch, TINY_VAE.columns * TINY_VAE.patch)
    starts = torch.stack([normal(seed, "start", index, side).sigmoid() for index in range(3)])
    for network in (transformer, vae):
        network.to(device).eval().requires_grad_(False)
    return OasisComponents(transformer, vae, Ddim.of(TINY_STEPS), starts)
