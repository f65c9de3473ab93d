"""What Oasis is, and how it is loaded.

reverie serve --model oasis --checkpoint DIR      oasis500m.safetensors, vit-l-20.safetensors and
                                                  start pictures, *.png, 640 x 360
reverie serve --model oasis --checkpoint random   tiny random weights: noise, to try paths
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from reverie.models.attending import attention_of
from reverie.models.blocks import BlockPool
from reverie.models.checkpoints import CheckpointManifest, CheckpointReport, fill, inspect
from reverie.models.controls import ControlSpec, Merge, ParameterSpec
from reverie.models.errors import CheckpointError
from reverie.models.instance import LoadOptions, ModelInstance
from reverie.models.loop import LoopKernel
from reverie.models.oasis.config import CAMERA, KEYS, DitConfig, VaeConfig
from reverie.models.oasis.ddim import Ddim
from reverie.models.oasis.guided import WEIGHT
from reverie.models.oasis.kernel import CONTROL, OasisKernel, OasisParts
from reverie.models.oasis.transformer import OasisTransformer
from reverie.models.oasis.vae import OasisVae
from reverie.models.placement import device_of, half_on_cuda, precision_of
from reverie.models.room import room_for
from reverie.models.seeds import Draw, normal
from reverie.models.spec import (
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
            ControlSpec(CONTROL, Merge.EDGES, keys=KEYS, label="Keys"),
            *(
                ControlSpec(axis, Merge.SUM, low=-1.0, high=1.0, label=turns)
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
            parts = random_parts(device)
        else:
            dtype = precision_of(options, self.spec.precisions, half_on_cuda(device), "oasis")
            parts = self._networks.load(Path(options.checkpoint), device, dtype)
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
            weights_version=_version(options.checkpoint),
            components={"transformer": parts.transformer, "vae": parts.vae},
            blocks=BlockPool(blocks, spec.caches[0].shape, dtype, device),
            room=room,
        )
        self._parts[instance.name] = parts
        return instance

    def kernel(self, loop: str, instance: ModelInstance) -> LoopKernel[Any]:
        """Return the kernel of `world_model`, the one loop."""
        return OasisKernel(instance.spec.loop(loop), self._parts[instance.name], instance)

    def check(self, path: str) -> CheckpointReport:
        """Compare a checkpoint with the public one; only headers are read.

        Raises:
            CheckpointError: there is no transformer of it.
        """
        folder = Path(path)
        report = self._networks.find(folder, "transformer").report
        lacking = [] if any(folder.glob("*.png")) else ["a start picture (*.png)"]
        if WEIGHTS["vae"].find(folder):
            report = report.joined(self._networks.find(folder, "vae").report)
        else:
            lacking.append(f"the VAE ({' or '.join(WEIGHTS['vae'].files)})")
        return replace(report, lacking=tuple(lacking))


@dataclass(frozen=True, slots=True)
class _Found:
    report: CheckpointReport
    model: torch.nn.Module
    stored: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Networks:
    dit: DitConfig
    vae: VaeConfig
    draw: Draw

    def find(self, folder: Path, part: str) -> _Found:
        manifest = WEIGHTS[part]
        files = manifest.find(folder)
        if not files:
            raise CheckpointError(f"{folder} holds no {' or '.join(manifest.files)}")
        stored = manifest.tensors(files)
        with torch.device("meta"):
            model = OasisTransformer(self.dit) if part == "transformer" else OasisVae(self.vae)
        return _Found(inspect(manifest.layout, stored, model), model, stored)

    def load(self, folder: Path, device: torch.device, dtype: torch.dtype) -> OasisParts:
        networks = []
        for part in ("transformer", "vae"):
            found = self.find(folder, part)
            found.report.require_fit()
            fill(found.model, found.stored, device, dtype)
            networks.append(found.model)
        transformer, vae = networks
        assert isinstance(transformer, OasisTransformer)
        assert isinstance(vae, OasisVae)
        return OasisParts(transformer, vae, Ddim.of(STEPS), _starts(folder, vae.config), self.draw)


def _starts(folder: Path, config: VaeConfig) -> Tensor:
    width, height = config.columns * config.patch, config.rows * config.patch
    pictures = []
    for path in sorted(folder.glob("*.png")):
        try:
            with Image.open(path) as picture:
                fitted = picture.convert("RGB").resize((width, height))
        except (OSError, UnidentifiedImageError) as error:
            raise CheckpointError(f"cannot read {path}: {error}") from error
        pictures.append(torch.from_numpy(np.array(fitted)).permute(2, 0, 1) / 255)
    if not pictures:
        raise CheckpointError(f"{folder} holds no start picture (*.png)")
    return torch.stack(pictures)


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


def _version(checkpoint: str) -> str:
    files = sorted(Path(checkpoint).glob("*.safetensors"))
    return "-".join(f"{file.stat().st_size:x}.{file.stat().st_mtime_ns:x}" for file in files) or (
        checkpoint
    )
