"""A family without weights or cache, and a kernel whose chunk is one unit, for small stubs."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar

import torch

from reverie.models.contract.blocks import BlockId, LoopState
from reverie.models.contract.controls import Controls
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import (
    BatchKey,
    LoopKernel,
    StepBatch,
    StepResult,
    StepUnit,
    WorkPlan,
)
from reverie.models.contract.spec import LoopSpec, ModelSpec

S = TypeVar("S", bound=LoopState)


class WithoutBlocks:
    """A state without cache blocks."""

    __slots__ = ()

    @property
    def blocks(self) -> tuple[BlockId, ...]:
        return ()


class OneUnitKernel(LoopKernel[S]):
    """Each unit takes the controls, commits and shows a chunk."""

    def __init__(self, spec: LoopSpec, instance: ModelInstance) -> None:
        self.spec = spec
        self._key = BatchKey(instance.name, "1", spec.name, "chunk")

    def plan_step(self, state: S, controls: Controls) -> WorkPlan:
        names = tuple(stream.name for stream in self.spec.streams)
        return WorkPlan(
            "chunk", self._key, streams=names, takes_controls=True, commits=True, shows=True
        )

    def run_step(self, batch: StepBatch[S]) -> Sequence[StepResult[S]]:
        return [self.step(unit) for unit in batch.units]

    @abstractmethod
    def step(self, unit: StepUnit[S]) -> StepResult[S]:
        """Make a chunk."""


class WeightlessFamily:
    """Loads an instance without weights, on the CPU."""

    @property
    @abstractmethod
    def spec(self) -> ModelSpec:
        """The description."""

    def load(self, options: LoadOptions) -> ModelInstance:
        cpu = torch.device("cpu")
        return ModelInstance(f"{self.spec.name}-0", self.spec, cpu, torch.float32, "1")
