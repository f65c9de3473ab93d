"""The Oasis family: its description, and how it is loaded.

reverie serve --model oasis --checkpoint DIR      oasis500m.safetensors, vit-l-20.safetensors and
                                                  start pictures, *.png, 640 x 360
reverie serve --model oasis --checkpoint random   tiny random weights: noise, to try the server
"""

from typing import Any

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
    Lead,
    LoopSpec,
    ModelSpec,
    ParallelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)
from reverie.models.oasis.checkpoint import OasisCheckpoints, random_components
from reverie.models.oasis.components import OasisComponents
from reverie.models.oasis.config import BINDINGS, CAMERA, DRAGS, KEYS, DitConfig, VaeConfig
from reverie.models.oasis.guidance import WEIGHT
from reverie.models.oasis.kernel import CONTROL, OasisKernel
from reverie.models.services.attention_choice import attention_of
from reverie.models.services.capacity import room_for
from reverie.models.services.checkpoint_report import CheckpointReport
from reverie.models.services.placement import device_of, half_on_cuda, precision_of
from reverie.models.services.weight_files import CheckpointPaths

RANDOM = "random"
RATE_HZ = 20.0
LEAD = Lead(most_ms=600)
"""A frame that can be taken back is a block of several megabytes."""
FLOAT32 = 4


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
        programs=(ProgramSpec("world", ("world_model",), LEAD),),
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
        dit: the sizes of the transformer; a checkpoint does not contain all of them.
        vae: the sizes of the codec.
        draw: the source of the sessions' noise.
    """

    spec = oasis_spec(DitConfig(), VaeConfig())

    def __init__(
        self, dit: DitConfig | None = None, vae: VaeConfig | None = None, draw: Draw = normal
    ) -> None:
        self._networks = OasisCheckpoints(dit or DitConfig(), vae or VaeConfig(), draw)
        self._components: dict[str, OasisComponents] = {}

    def load(self, options: LoadOptions) -> ModelInstance:
        """Load what `options.checkpoint` names.

        Raises:
            CheckpointError: nothing is named, a file is missing, or one does not fit.
            OptionError: the device, precision or attention is not supported.
        """
        if options.checkpoint is None:
            raise CheckpointError(
                "oasis ships no weights: set checkpoint to a folder, or to `random`"
            )
        device = device_of(options)
        if options.checkpoint == RANDOM:
            components, version = random_components(device), RANDOM
        else:
            dtype = precision_of(options, self.spec.precisions, half_on_cuda(device), "oasis")
            places = CheckpointPaths.of(options.checkpoint, options.parts)
            components, version = self._networks.load(places, device, dtype)
        dit = components.transformer.config
        spec = oasis_spec(dit, components.vae.config)
        dtype = components.transformer.dtype
        attention = attention_of(options, device, dtype)
        components.transformer.attend_with(attention)
        components.vae.attend_with(attention)
        room = room_for(spec, options, device, dtype)
        blocks = room.sessions * spec.blocks_a_session(room.history_chunks)
        instance = ModelInstance(
            name="oasis",
            spec=spec,
            device=device,
            dtype=dtype,
            weights_version=version,
            components={"transformer": components.transformer, "vae": components.vae},
            blocks=BlockPool(blocks, spec.caches[0].shape, dtype, device),
            room=room,
        )
        self._components[instance.name] = components
        return instance

    def kernel(self, loop: str, instance: ModelInstance) -> LoopKernel[Any]:
        """Return the kernel of `world_model`, the one loop."""
        return OasisKernel(instance.spec.loop(loop), self._components[instance.name], instance)

    def check(self, path: str, parts: str | None = None) -> CheckpointReport:
        """Compare a checkpoint with the public one; only headers and pictures are read.

        Args:
            path: a folder, or the file of the transformer.
            parts: the folder of VAE and start pictures; None: they are next to it.

        Raises:
            CheckpointError: there is no transformer.
        """
        return self._networks.look(CheckpointPaths.of(path, parts)).report
