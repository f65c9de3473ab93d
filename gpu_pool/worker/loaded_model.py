"""What a worker has loaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reverie.engine.admission import Admission
from reverie.engine.options import DriverOptions
from reverie.engine.outputs import FrameMemory, new_memory
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import LoopKernel
from reverie.models.contract.spec import LoopSpec


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """One model on one device, ready to be driven.

    Attributes:
        frame_memory: where drivers write frames to.
    """

    instance: ModelInstance
    kernels: Mapping[str, LoopKernel[Any]]
    admission: Admission
    options: DriverOptions
    frame_memory: FrameMemory = new_memory

    def loops(self, program: str) -> tuple[LoopSpec, ...]:
        """Return the loops of a program, the one that leads first.

        Raises:
            SpecError: there is no such program.
        """
        spec = self.instance.spec
        return tuple(spec.loop(name) for name in spec.program(program).loops)
