"""The description of a model family, available before anything of it is loaded.

A `ModelSpec` names components, loops, programs and capabilities. `ModelSpec.validate` refuses a
description that contradicts itself, so that a server fails at start and not in a session.
Every class of a description can be imported from here. They are defined in `streams.py`,
`loop_spec.py` and `parallel.py`; the checks are in `spec_validation.py` and `spec_values.py`.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import TypeVar

from reverie.models.contract.controls import ParameterSpec
from reverie.models.contract.errors import SpecError
from reverie.models.contract.loop_spec import (
    CacheSpec,
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    Lead,
    LoopSpec,
    ProgramSpec,
)
from reverie.models.contract.parallel import ONE_DEVICE, UNSPLIT, ParallelPlan, ParallelSpec
from reverie.models.contract.spec_validation import (
    check_caches,
    check_loop,
    check_names,
    check_program,
)
from reverie.models.contract.spec_values import (
    check_capabilities,
    check_kinds,
    check_name,
    check_precisions,
    check_shape,
    check_shares,
    check_values,
)
from reverie.models.contract.speed import MeasuredSpeed
from reverie.models.contract.streams import (
    FASTEST_HZ,
    SLOWEST_HZ,
    InputSpec,
    StreamKind,
    StreamSpec,
)

__all__ = [
    "FASTEST_HZ",
    "ONE_DEVICE",
    "SLOWEST_HZ",
    "CacheSpec",
    "Capability",
    "CapabilityMatrix",
    "ComponentSpec",
    "InputSpec",
    "Lead",
    "LoopSpec",
    "ModelSpec",
    "ParallelPlan",
    "ParallelSpec",
    "ProgramSpec",
    "StreamKind",
    "StreamSpec",
]

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Of a number, by precision."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model family, validated before any weight is read.

    Attributes:
        licence: of this implementation of the family.
        precisions: those that it computes in, the default of a CPU first.
        caches: kinds of cache blocks; empty: one for each loop with a window.
        parallel: how it could be split over devices.
        weights_licence: of the public weights; empty where it is unknown or stated elsewhere.
        guided: whether its operator chooses how guidance is computed (`LoadOptions.guidance`).
        context_option: whether its operator chooses the context length (`LoadOptions.context`).
        games: that an operator can say the weights were trained on (`LoadOptions.game`).
        has_parts: whether its weights may be a file, with what else they need in another folder
            (`LoadOptions.parts`).
        speed: what was measured when the model was loaded; None in a description.
    """

    name: str
    title: str
    licence: str
    components: tuple[ComponentSpec, ...]
    loops: tuple[LoopSpec, ...]
    programs: tuple[ProgramSpec, ...]
    capabilities: CapabilityMatrix
    precisions: tuple[str, ...] = ("float32",)
    caches: tuple[CacheSpec, ...] = ()
    parallel: ParallelSpec = UNSPLIT
    weights_licence: str = ""
    guided: bool = False
    context_option: bool = False
    games: tuple[str, ...] = ()
    has_parts: bool = False
    speed: MeasuredSpeed | None = None

    def loop(self, name: str) -> LoopSpec:
        """Return the loop called `name`.

        Raises:
            SpecError: the model has none of that name.
        """
        return _named(self.loops, name, f"model {self.name} has no loop {name!r}")

    def program(self, name: str) -> ProgramSpec:
        """Return the program called `name`.

        Raises:
            SpecError: the model has none of that name.
        """
        return _named(self.programs, name, f"model {self.name} has no program {name!r}")

    def program_parameters(self, name: str) -> tuple[ParameterSpec, ...]:
        """Return the parameters of a program with its own defaults; of one name the first.

        Raises:
            SpecError: the model has no program of that name.
        """
        program = self.program(name)
        found: dict[str, ParameterSpec] = {}
        for loop in program.loops:
            for spec in self.loop(loop).parameters:
                default = program.parameters.get(spec.name, spec.default)
                found.setdefault(spec.name, replace(spec, default=default))
        return tuple(found.values())

    def with_default(self, parameter: str, value: float) -> "ModelSpec":
        """Return this with another default of a parameter, in each loop that has it."""
        loops = tuple(
            replace(
                loop,
                parameters=tuple(
                    replace(spec, default=value) if spec.name == parameter else spec
                    for spec in loop.parameters
                ),
            )
            for loop in self.loops
        )
        return replace(self, loops=loops)

    def kept_chunks(self, history_chunks: int) -> int:
        """Return the chunks to keep of a session: those to rewind to, or more for a long lead."""
        leads = [
            program.lead.most_chunks(self.loop(name).chunk_us)
            for program in self.programs
            for name in program.loops
            if self.loop(name).has_media
        ]
        return max([history_chunks, *leads])

    def blocks_a_session(self, history_chunks: int) -> int:
        """Return the cache blocks to hold for one session, whichever of the programs it runs."""
        return max(
            sum(self.loop(name).blocks_a_session(history_chunks) for name in program.loops)
            for program in self.programs
        )

    def bytes_a_session(self, history_chunks: int, precision: str) -> int | None:
        """Return the memory of one session, whichever of the programs it runs.

        Computed from the description; None when it is known only from the loaded weights.
        """
        blocks = self.blocks_a_session(history_chunks)
        shapes = {cache.shape for cache in self.caches}
        if blocks and (not shapes or () in shapes):
            return None
        cached = blocks * prod(shapes.pop()) * BYTES[precision] if blocks else 0
        return cached + max(
            sum(self.loop(name).bytes_beside_the_cache(history_chunks) for name in program.loops)
            for program in self.programs
        )

    def validate(self, plan: ParallelPlan = ONE_DEVICE) -> None:
        """Refuse a description that contradicts itself, and a plan that the model cannot follow.

        Raises:
            SpecError: names the first contradiction found.
            OptionError: names the field of the plan.
        """
        check_name("this description", "model", self.name)
        model = f"model {self.name}"
        for kind, items in (
            (ComponentSpec, self.components),
            (LoopSpec, self.loops),
            (ProgramSpec, self.programs),
            (CacheSpec, self.caches),
        ):
            check_kinds(model, kind, items)
        if not self.programs:
            raise SpecError(f"{model} has no programs, so nothing can run")
        check_precisions(model, self.precisions, BYTES)
        check_capabilities(model, self.capabilities)
        check_shares(model, self.parallel)
        self._check_parts(model)
        self.parallel.require(plan, model)

    def _check_parts(self, model: str) -> None:
        parts = [part.name for part in self.components]
        check_names(model, "component", parts)
        check_names(model, "loop", [loop.name for loop in self.loops])
        check_names(model, "program", [program.name for program in self.programs])
        for loop in self.loops:
            check_values(f"loop {loop.name} of {self.name}", loop)
            check_loop(f"loop {loop.name} of {self.name}", loop, parts, self.capabilities)
        for program in self.programs:
            loops = [self.loop(name) for name in program.loops]
            check_program(f"program {program.name} of {self.name}", program, loops)
        for name in self.capabilities.rows:
            self.loop(name)
        for cache in self.caches:
            check_shape(model, cache)
        check_caches(model, self.caches, {loop.name: loop for loop in self.loops})


_Named = TypeVar("_Named", LoopSpec, ProgramSpec)


def _named(items: tuple[_Named, ...], name: str, error: str) -> _Named:
    for item in items:
        if item.name == name:
            return item
    raise SpecError(error)
