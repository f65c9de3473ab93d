"""What Oasis is, and how it is loaded.

reverie serve --model oasis --checkpoint DIR      oasis500m.safetensors, vit-l-20.safetensors and
                                                  start pictures, *.png, 640 x 360
reverie serve --model oasis --checkpoint random   tiny random weights: noise, to try paths
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from reverie.models.contract.blocks import BlockPool
from reverie.models.contract.controls import ControlSpec, Merge, ParameterSpec
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import LoopKernel
from reverie.models.contract.seeds import Draw, normal
from reverie.models.contract.spec import (
    CacheSpec,
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    LoopSpec,
    ModelSpec,
    ParallelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)
from reverie.models.oasis.config import BINDINGS, CAMERA, DRAGS, KEYS, DitConfig, VaeConfig
from reverie.models.oasis.ddim import Ddim
from reverie.models.oasis.guided import WEIGHT
from reverie.models.oasis.kernel import CONTROL, OasisKernel, OasisParts
from reverie.models.oasis.transformer import OasisTransformer
from reverie.models.oasis.vae import OasisVae
from reverie.models.services.attention_choice import attention_of
from reverie.models.services.capacity import room_for
from reverie.models.services.checkpoints import (
    CheckpointManifest,
    CheckpointReport,
    fill,
    inspect,
    of_fault,
)
from reverie.models.services.placement import device_of, half_on_cuda, precision_of
from reverie.models.services.start_pictures import check_starts, read_starts
from reverie.models.services.weight_files import Places, one_network

RANDOM = "random"
RATE_HZ = 20.0
FLOAT32 = 4
STEPS = 10
TINY_DIT = DitConfig(height=4, width=6, hidden=32, depth=2, heads=2, window=5)
TINY_VAE = VaeConfig(rows=4, columns=6, patch=8, width=32, encoder=1, decoder=1, heads=2)
TINY_STEPS = 3


def _own_name(name: str) -> str | None:
    """Leave out the angles, which are computed."""
    return None if "rotary" in name else name


WEIGHTS = {
    "transformer": CheckpointManifest("Oasis 500M", ("oasis500m*.safetensors",), _own_name),
    "vae": CheckpointManifest("ViT-VAE 20", ("vit-l-20*.safetensors",), _own_name),
}
NAMES = {"transformer": "transformers", "vae": "VAEs"}
"""What several of them are called."""


def oasis_spec(dit: DitConfig, vae: VaeConfig) -> ModelSpec:
    """Describe an Oasis of these sizes."""
    latents = FLOAT32 * dit.channels * dit.height * dit.width
    loop = LoopSpec(
        name="world_model",
        components=("transformer", "vae"),
        streams=(
            StreamSpec(
                "video", StreamKind.VIDEO, vae.columns * vae.patch, vae.rows * vae.patch, RATE_HZ
            ),
        ),
        controls=(
            ControlSpec(CONTROL, Merge.EDGES, keys=KEYS, label="Keys", bindings=BINDINGS),
            *(
                ControlSpec(axis, Merge.SUM, low=-1.0, high=1.0, label=turns, drag=DRAGS[axis])
                for axis, turns in CAMERA.items()
            ),
        ),
        parameters=(ParameterSpec(WEIGHT, 1.0, 1.0, 4.0, label="Weight of keys and mouse"),),
        window_blocks=dit.window - 1,
        chunk_blocks=1,
        rebuild_blocks=dit.window - 1,
        caches=("frames",),
        state_bytes=dit.window * latents,
        chunk_bytes=latents,
    )
    shape = (2, dit.depth, dit.rows * dit.columns, dit.heads, dit.head_size)
    return ModelSpec(
        name="oasis",
        title="Oasis 500M: a world of blocks, played with keys and mouse",
        licence="Apache-2.0",
        components=(
            ComponentSpec("transformer", "diffusion transformer over space and time"),
            ComponentSpec("vae", "pictures to latents and back"),
        ),
        loops=(loop,),
        programs=(ProgramSpec("world", ("world_model",)),),
        capabilities=CapabilityMatrix(
            {"world_model": frozenset({Capability.ACTIONS, Capability.REWIND, Capability.FORK})}
        ),
        precisions=("float32", "bfloat16"),
        caches=(CacheSpec("frames", ("world_model",), ("context",), shape),),
        has_parts=True,
        parallel=ParallelSpec(tensor=dit.heads, sequence=dit.rows * dit.columns),
    )


class Oasis:
    """The family behind the entry point `oasis`.

    Args:
        dit: the sizes of the transformer; a checkpoint does not hold all of them.
        vae: the same of the codec.
        draw: where sessions get their noise from.
    """

    spec = oasis_spec(DitConfig(), VaeConfig())

    def __init__(
        self, dit: DitConfig | None = None, vae: VaeConfig | None = None, draw: Draw = normal
    ) -> None:
        self._networks = _Networks(dit or DitConfig(), vae or VaeConfig(), draw)
        self._parts: dict[str, OasisParts] = {}

    def load(self, options: LoadOptions) -> ModelInstance:
        """Load what `options.checkpoint` names.

        Raises:
            CheckpointError: nothing is named, a file is missing, or one does not fit.
            OptionError: there is no such device, precision or attention.
        """
        if options.checkpoint is None:
            raise CheckpointError(
                "oasis has no weights of its own: name a folder as checkpoint, or `random`"
            )
        device = device_of(options)
        if options.checkpoint == RANDOM:
            parts, version = random_parts(device), RANDOM
        else:
            dtype = precision_of(options, self.spec.precisions, half_on_cuda(device), "oasis")
            places = Places.of(options.checkpoint, options.parts)
            parts, version = self._networks.load(places, device, dtype)
        dit = parts.transformer.config
        spec = oasis_spec(dit, parts.vae.config)
        dtype = parts.transformer.dtype
        attention = attention_of(options, device, dtype)
        parts.transformer.attend_with(attention)
        parts.vae.attend_with(attention)
        room = room_for(spec, options, device, dtype)
        blocks = room.sessions * spec.blocks_a_session(room.history_chunks)
        instance = ModelInstance(
            name="oasis",
            spec=spec,
            device=device,
            dtype=dtype,
            weights_version=version,
            components={"transformer": parts.transformer, "vae": parts.vae},
            blocks=BlockPool(blocks, spec.caches[0].shape, dtype, device),
            room=room,
        )
        self._parts[instance.name] = parts
        return instance

    def kernel(self, loop: str, instance: ModelInstance) -> LoopKernel[Any]:
        """Return the kernel of `world_model`, the one loop."""
        return OasisKernel(instance.spec.loop(loop), self._parts[instance.name], instance)

    def check(self, path: str, parts: str | None = None) -> CheckpointReport:
        """Compare a checkpoint with the public one; only headers and pictures are read.

        Args:
            path: a folder, or the file of the transformer.
            parts: the folder of VAE and pictures; None: they are next to it.

        Raises:
            CheckpointError: there is no transformer of it.
        """
        return self._networks.look(Places.of(path, parts)).report


@dataclass(frozen=True, slots=True)
class _Found:
    files: tuple[Path, ...]
    report: CheckpointReport
    model: torch.nn.Module
    stored: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    networks: tuple[_Found, ...]
    report: CheckpointReport


@dataclass(frozen=True, slots=True)
class _Networks:
    dit: DitConfig
    vae: VaeConfig
    draw: Draw

    def look(self, places: Places) -> _Checkpoint:
        """Look at every part, before any is read."""
        networks = [self.find(places.checkpoint, "transformer")]
        report = networks[0].report
        if WEIGHTS["vae"].find(places.parts):
            try:
                networks.append(self.find(places.parts, "vae"))
                report = report.joined(networks[1].report)
            except CheckpointError as fault:
                report = report.joined(of_fault(fault))
        else:
            lacking = f"the VAE ({' or '.join(WEIGHTS['vae'].files)})"
            report = replace(report, lacking=(lacking,))
        return _Checkpoint(tuple(networks), report.joined(check_starts(places.parts)))

    def find(self, place: Path, part: str) -> _Found:
        manifest = WEIGHTS[part]
        if not place.exists():
            raise CheckpointError(f"{place}: no such file or folder")
        files = (place,) if place.is_file() else manifest.find(place)
        if not files:
            raise CheckpointError(f"{place} holds no {' or '.join(manifest.files)}")
        folder = files[0].parent
        files = one_network(folder, NAMES[part], files)
        stored = manifest.tensors(files)
        with torch.device("meta"):
            model = OasisTransformer(self.dit) if part == "transformer" else OasisVae(self.vae)
        report = inspect(manifest.layout, stored, model)
        if part == "vae" and not report.matched:
            raise CheckpointError(f"{files[0]} is no VAE of Oasis: it has none of its tensors")
        return _Found(files, report.of_part(part, folder, files), model, stored)

    def load(
        self, places: Places, device: torch.device, dtype: torch.dtype
    ) -> tuple[OasisParts, str]:
        """Load what fits; return it with the version of its weights."""
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
        return OasisParts(transformer, vae, Ddim.of(STEPS), starts, self.draw), version


def random_parts(device: torch.device, seed: int = 0) -> OasisParts:
    """Make a tiny Oasis that has learnt nothing; the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        transformer, vae = OasisTransformer(TINY_DIT), OasisVae(TINY_VAE)
    side = (3, TINY_VAE.rows * TINY_VAE.patch, TINY_VAE.columns * TINY_VAE.patch)
    starts = torch.stack([normal(seed, "start", index, side).sigmoid() for index in range(3)])
    for network in (transformer, vae):
        network.to(device).eval().requires_grad_(False)
    return OasisParts(transformer, vae, Ddim.of(TINY_STEPS), starts)
