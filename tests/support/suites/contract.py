"""The contract suite: what every kernel must guarantee.

`tests/models/test_contract.py` puts every family of `CASES` through every check.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import tiny_diamond
import tiny_lm
import tiny_oasis
import tiny_wan
from faulty_kernel import FaultyKernel, KernelFault
from fingerprint import fingerprint, random_fingerprint
from numpy.typing import NDArray
from shown_chunks import SAYS, ContractRig, ShownChunk
from stub_model import StubFamily
from tiny_diamond import TinyDiamond
from tiny_lm import TinyLm
from tiny_oasis import TinyOasis
from tiny_pocket import tiny_options
from tiny_wan import TinyWan

from reverie.engine.checkpoints import BlockHolder
from reverie.engine.driver import DriverOptions
from reverie.engine.emissions import ControlApplied, SnapshotOut, StepFailed
from reverie.engine.inputs import (
    AxisInput,
    ControlId,
    ControlInput,
    KeysInput,
    PromptInput,
    StreamInput,
)
from reverie.models.contract.controls import Controls, KeyEdge, KeyInput, MediaInput, Merge, Turn
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.loop import (
    Idle,
    LoopRequest,
    StepBatch,
    StepResult,
    StepUnit,
    WorkPlan,
)
from reverie.models.contract.registry import ModelFamily, find_family
from reverie.models.contract.spec import Capability, InputSpec, LoopSpec
from reverie.models.pocket.spec import Pocket

TIDE = f"{Path(__file__).resolve().parents[3]}/examples/tide.py:Tide"
PLASMA = f"{Path(__file__).resolve().parents[3]}/examples/plasma.py:family"


@dataclass(frozen=True)
class ContractCase:
    """A family to put through the suite.

    Attributes:
        chunks: how many to run where a few are enough.
        prompts: the one to begin with, and one that must look different.
        tolerance: greatest difference of a pixel in a batch with others; above 0 only for a model
            that computes a batch in one pass, whose sums depend on its size. Alone it is 0.
        first_frames: frames of the very first chunk, when it has fewer than the others.
        loop_name: which loop; empty takes the family's first.
        pushes: whether pictures are pushed into its inputs; not for a loop that rests after one.
        parameters: other than their defaults.
    """

    name: str
    family: Callable[[], ModelFamily]
    chunks: int = 4
    prompts: tuple[str, str] = ("a frozen lake", "a neon city at night")
    tolerance: int = 0
    first_frames: int | None = None
    loop_name: str = ""
    pushes: bool = True
    parameters: Mapping[str, float] = field(default_factory=dict)

    @property
    def pushed(self) -> dict[str, MediaInput]:
        """A picture for each input stream."""
        streams = self.loop.inputs if self.pushes else ()
        return {each.name: MediaInput(0, pushed_picture(each), last=True) for each in streams}

    options: LoadOptions = field(
        default_factory=lambda: LoadOptions(device="cpu", sessions=4, history_chunks=3)
    )

    def rig(self, max_batch: int = 8) -> ContractRig:
        return ContractRig(self.family(), self.options, max_batch=max_batch, loop=self.loop_name)

    @property
    def loop(self) -> LoopSpec:
        spec = self.family().spec
        return spec.loop(self.loop_name) if self.loop_name else spec.loops[0]

    def has(self, capability: Capability) -> bool:
        return self.family().spec.capabilities.has(self.loop.name, capability)

    def request(self, session: str = "s1", seed: int = 7) -> LoopRequest:
        defaults = {parameter.name: parameter.default for parameter in self.loop.parameters}
        parameters = {**defaults, **self.parameters}
        return LoopRequest(session, seed, self.prompts[0], parameters)

    def inputs(self) -> tuple[ControlInput, ...]:
        """Return something for every control: prompt, held key and tap, axis, picture."""
        inputs: list[ControlInput] = []
        if self.loop.prompt_tokens:
            inputs.append(PromptInput(ControlId("prompt"), self.prompts[1]))
        for spec in self.loop.controls:
            control = ControlId(spec.name)
            if spec.merge is Merge.EDGES:
                tap = (KeyEdge(spec.keys[-1], down=True), KeyEdge(spec.keys[-1], down=False))
                edges = (KeyEdge(spec.keys[0], down=True), *tap)
                inputs.append(KeysInput(control, spec.name, edges))
            if spec.merge is Merge.SUM:
                inputs.append(AxisInput(control, spec.name, spec.high / 2))
        for name, media in self.pushed.items():
            inputs.append(StreamInput(ControlId(name), name, media))
        return tuple(inputs)

    def controls(self) -> Controls:
        """Return what a step sees after `inputs`."""
        keys = {
            spec.name: KeyInput((KeyEdge(spec.keys[0], down=True),), (spec.keys[0],))
            for spec in self.loop.controls
            if spec.merge is Merge.EDGES
        }
        prompt = self.prompts[1] if self.loop.prompt_tokens else None
        media = {name: (picture,) for name, picture in self.pushed.items()}
        return Controls(prompt=prompt, keys=keys, media=media, turns=self.turns)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """What is said to a loop that does nothing else than answer."""
        return (Turn(SAYS),) if self.loop.takes_turns and not self.loop.has_media else ()

    def assert_same(
        self, left: Sequence[ShownChunk], right: Sequence[ShownChunk], tolerance: int = 0
    ) -> None:
        """Compare two runs, chunk by chunk."""
        assert len(left) == len(right), f"{len(left)} and {len(right)} chunks"
        for one, other in zip(left, right, strict=True):
            assert one.distance(other) <= tolerance, f"chunks {one.chunk} and {other.chunk} differ"


def pushed_picture(given: InputSpec) -> NDArray[np.uint8]:
    """Return a picture in the size that an input stream declares."""
    rng = np.random.default_rng(5)
    return rng.integers(0, 255, (given.height, given.width, 3), dtype=np.uint8)


CASES = (
    ContractCase("stub", StubFamily),
    ContractCase("frame_generator", lambda: find_family(PLASMA)),
    ContractCase("tide", lambda: find_family(TIDE)),
    ContractCase("pocket", Pocket, tolerance=1, options=tiny_options()),
    ContractCase("diamond", TinyDiamond, options=tiny_diamond.tiny_options()),
    ContractCase("oasis", TinyOasis, options=tiny_oasis.tiny_options()),
    ContractCase(
        "pocket_continuation",
        Pocket,
        tolerance=1,
        options=tiny_options(),
        loop_name="video_continuation",
    ),
    ContractCase(
        "pocket_restyle",
        Pocket,
        tolerance=1,
        options=tiny_options(),
        loop_name="restyle",
        pushes=False,
    ),
    ContractCase("wan", TinyWan, tolerance=1, first_frames=9, options=tiny_wan.tiny_options()),
    ContractCase(
        "wan_restyle",
        TinyWan,
        chunks=3,
        tolerance=1,
        first_frames=9,
        options=tiny_wan.tiny_options(),
        loop_name="restyle",
        pushes=False,
    ),
    ContractCase(
        "causal_lm",
        TinyLm,
        options=tiny_lm.tiny_options(),
        parameters={"temperature": 1.0, "longest": 6},
    ),
)


# --- the kernel by itself ---


@dataclass
class KernelRun:
    """A kernel run by hand, one unit at a time, every state of it kept."""

    case: ContractCase

    def __post_init__(self) -> None:
        self.rig = self.case.rig()
        self.kernel, self.instance = self.rig.kernel, self.rig.instance
        self.holder = BlockHolder(self.instance.blocks)
        self.state = self.kernel.init_state(self.case.request(), self.instance)

    def plan(self, controls: Controls) -> WorkPlan:
        if not controls.turns:
            controls = replace(controls, turns=self.case.turns)
        plan = self.kernel.plan_step(self.state, controls)
        assert not isinstance(plan, Idle), "a world always has something to do"
        return plan

    def run(self, plan: WorkPlan, controls: Controls) -> StepResult[Any]:
        """Run the unit and continue from its state; old states keep nothing but their values."""
        acting = replace(controls, turns=self.case.turns) if plan.takes_controls else Controls()
        blocks = self.holder.reserve(plan.writes)
        unit = StepUnit(plan, self.state, acting, blocks)
        [result] = self.kernel.run_step(StepBatch(self.instance, (unit,)))
        assert set(blocks) <= set(result.state.blocks), f"{plan.kind} reserves what it leaves"
        self.holder.retain(result.state.blocks)
        self.holder.release((*blocks, *self.state.blocks))
        self.state = result.state
        return result


def check_plan_is_pure(case: ContractCase) -> None:
    """Equal answers to equal input, and nothing is touched by asking."""
    bare, shown = KernelRun(case), 0
    while shown < case.chunks:
        before = fingerprint(bare.state, bare.instance), random_fingerprint(), len(bare.holder)
        for controls in (Controls(turns=case.turns), case.controls()):
            assert bare.kernel.plan_step(bare.state, controls) == bare.plan(controls)
        after = fingerprint(bare.state, bare.instance), random_fingerprint(), len(bare.holder)
        assert after == before, "plan_step has side effects"
        plan = bare.plan(Controls())
        bare.run(plan, Controls())
        shown += plan.shows


def check_states_are_not_edited(case: ContractCase) -> None:
    """A unit leaves the state that it was given, and the blocks of it, as they were."""
    bare, shown = KernelRun(case), 0
    while shown < case.chunks:
        controls = case.controls() if shown % 2 else Controls()
        plan, state = bare.plan(controls), bare.state
        bare.holder.retain(state.blocks)
        before = fingerprint(state, bare.instance)
        bare.run(plan, controls)
        assert fingerprint(state, bare.instance) == before, f"{plan.kind} edits its state"
        bare.holder.release(state.blocks)
        shown += plan.shows


def check_units_keep_to_their_plans(case: ContractCase) -> None:
    """A chunk commits once, shows once, has the declared frames, and can be steered.

    The very first may come from nowhere: a start frame that no control has made.
    """
    bare = KernelRun(case)
    streams = {stream.name for stream in case.loop.streams}
    caches = [cache for cache in bare.instance.spec.caches if case.loop.name in cache.producers]
    writers = {unit for cache in caches for unit in cache.units}
    for chunk in range(case.chunks):
        takes = commits = shows = frames = 0
        while not shows:
            plan = bare.plan(Controls())
            assert not (plan.writes and caches) or plan.kind in writers, f"{plan.kind} writes"
            result = bare.run(plan, Controls())
            assert {output.stream for output in result.outputs} <= set(plan.streams) <= streams
            assert commits or plan.commits or not result.outputs, "an output before the commit"
            takes, commits, shows = (
                takes + plan.takes_controls,
                commits + plan.commits,
                shows + plan.shows,
            )
            frames += sum(len(getattr(output, "frames_FHWC", ())) for output in result.outputs)
        assert takes or not chunk, "a chunk that takes no controls cannot be steered"
        due = case.loop.chunk_frames if chunk else case.first_frames or case.loop.chunk_frames
        assert (commits, frames) == (1, due if case.loop.has_media else 0)


def check_global_randomness_is_left_alone(case: ContractCase) -> None:
    """No step draws from a generator that others share."""
    rig = case.rig()
    before = random_fingerprint()
    rig.open(case.request())
    rig.run_shown("s1", case.chunks)
    assert random_fingerprint() == before


# --- the kernel under a driver ---


def reference(case: ContractCase, chunks: int | None = None) -> list[ShownChunk]:
    """Return the chunks of an undisturbed run under `case.inputs`."""
    rig = case.rig()
    rig.open(case.request()).push(case.inputs())
    return rig.run_shown("s1", chunks or case.chunks)


def check_neighbours_change_nothing(case: ContractCase) -> None:
    """The same seed gives the same pixels alone, and while others join and leave its batches."""
    rig = case.rig()
    rig.open(case.request()).push(case.inputs())
    for index in range(case.chunks):
        if index < 3:
            rig.open(case.request(f"n{index}", seed=100 + index))
        if index == 2:
            rig.close("n0")
        rig.run_shown("s1", 1)
    assert case.has(Capability.BATCH) or not case.tolerance
    case.assert_same(rig.shown("s1"), reference(case), case.tolerance)


def check_seeds_differ(case: ContractCase) -> None:
    """Another seed is another world."""
    rig = case.rig()
    rig.open(case.request(seed=8)).push(case.inputs())
    others = rig.run_shown("s1", case.chunks)
    pairs = zip(others, reference(case), strict=True)
    assert any(one.distance(other) for one, other in pairs)


def check_controls_show_in_the_next_chunk(case: ContractCase) -> None:
    """Each control changes the first chunk that takes it, and its receipt says so."""
    rig = case.rig()
    rig.open(case.request())
    still = rig.run_shown("s1", 2)[1]
    for control in case.inputs():
        rig = case.rig()
        driver = rig.open(case.request())
        rig.run_shown("s1", 1)
        driver.push([control])
        [steered] = rig.run_shown("s1", 1)
        assert steered.distance(still), f"{control} has no effect"
        receipts = rig.heard_of("s1", ControlApplied)
        [receipt] = [each for each in receipts if each.control == control.control]
        assert receipt.chunk == steered.chunk
        assert receipt.pts_us == steered.pts_us


def check_interrupting_at_every_boundary_goes_on_from_the_last_commit(case: ContractCase) -> None:
    """However many units have run, an interrupt continues from the chunk that was seen."""
    base = case.rig()
    expected = reference(case)
    for units in range(_units(case, case.chunks - 1) + 1):
        rig = base.again()
        driver = rig.open(case.request())
        driver.push(case.inputs())
        for _ in range(units):
            rig.step()
        shown = len(rig.shown("s1"))
        if rig.talks:  # what was said counts as said, and the next turn is answered
            driver.cancel()
            assert rig.run_shown("s1", 1)
        else:
            assert driver.interrupt(shown - 1).chunk == shown - 1
            [after] = rig.run_shown("s1", 1)
            case.assert_same([after], [expected[shown]])
            assert after.discontinuity
        _assert_blocks_come_back(rig)


def check_closing_at_every_boundary_returns_every_block(case: ContractCase) -> None:
    """Wherever a session ends, its blocks are free again."""
    base = case.rig()
    for units in range(_units(case, 2) + 1):
        rig = base.again()
        rig.open(case.request()).push(case.inputs())
        for _ in range(units):
            rig.step()
        _assert_blocks_come_back(rig)


def check_a_bad_step_at_every_boundary_is_rolled_back(case: ContractCase) -> None:
    """A step that fails once is run again, and the pixels do not show it."""
    base = case.rig()
    expected = reference(case)
    for fault in KernelFault:
        for units in range(_units(case, 2)):
            rig = base.again()
            rig.kernel = kernel = FaultyKernel(rig.kernel)
            rig.open(case.request()).push(case.inputs())
            for _ in range(units):
                rig.step()
            kernel.spoil(fault)
            rig.run_shown("s1", case.chunks - len(rig.shown("s1")))
            case.assert_same(rig.shown("s1"), expected)
            [failed] = rig.heard_of("s1", StepFailed)
            assert (failed.code.value, failed.fatal) == (fault.value, False)
            _assert_blocks_come_back(rig)


def check_a_step_that_stays_bad_ends_its_session_alone(case: ContractCase) -> None:
    """The second failure in a row is the last; a neighbour notices nothing."""
    for fault in KernelFault:
        rig = case.rig(max_batch=1)
        rig.kernel = kernel = FaultyKernel(rig.kernel)
        driver = rig.open(case.request("bad"))
        rig.run_shown("bad", 1)
        kernel.spoil(fault, times=2)
        rig.run_idle()
        assert driver.ended
        assert [failed.fatal for failed in rig.heard_of("bad", StepFailed)] == [False, True]
        rig.open(case.request()).push(case.inputs())
        case.assert_same(rig.run_shown("s1", case.chunks), reference(case))
        _assert_blocks_come_back(rig)


def check_rewinding_copies_nothing(case: ContractCase) -> None:
    """A rewind takes no block, and the session continues as it did from there."""
    rig = case.rig()
    driver = rig.open(case.request())
    driver.push(case.inputs())
    first = rig.run_shown("s1", case.chunks)
    free = rig.instance.blocks.free if rig.instance.blocks else 0
    back = case.chunks - 3
    assert driver.rewind(back).chunk == back
    assert (rig.instance.blocks.free if rig.instance.blocks else 0) >= free
    again = rig.run_shown("s1", 2)
    case.assert_same(again, first[-2:])
    _assert_blocks_come_back(rig)


def check_a_fork_shares_its_blocks(case: ContractCase) -> None:
    """A fork copies nothing, continues as its origin would have, and outlives it."""
    if not case.has(Capability.FORK):
        return
    rig = case.rig()
    driver = rig.open(case.request())
    # A fork holds no keys, and to press one again would be another press.
    keyless = tuple(item for item in case.inputs() if not isinstance(item, KeysInput))
    driver.push(keyless)
    rig.run_shown("s1", case.chunks - 2)
    free = rig.instance.blocks.free if rig.instance.blocks else 0
    rig.drivers["first"], rig.heard["first"] = rig.drivers.pop("s1"), []
    start, pts_us = driver.parting(None), driver.position.pts_us
    # Of the same name, for a model may show whose its pictures are.
    rig.open(driver.request, chunks=start.chunk + 1, pts_us=pts_us, checkpoint=start)
    assert (rig.instance.blocks.free if rig.instance.blocks else 0) == free
    rig.close("first")
    after = rig.run_shown("s1", 2)
    alone = case.rig()
    alone.open(case.request()).push(keyless)
    case.assert_same(after, alone.run_shown("s1", case.chunks)[-2:])
    assert [chunk.chunk for chunk in after] == [start.chunk + 1, start.chunk + 2]
    assert after[0].discontinuity or not case.loop.has_media
    _assert_blocks_come_back(rig)


def check_a_durable_state_goes_on(case: ContractCase) -> None:
    """What is left of a lost worker is enough to continue from, exactly where the model says so."""
    if not case.has(Capability.DURABLE):
        return
    lost = case.rig()
    options = DriverOptions(history_chunks=3, snapshot_every_us=1)
    prompts = [item for item in case.inputs() if isinstance(item, PromptInput)]
    lost.open(case.request(), options).push(prompts)
    frames = lost.run_shown("s1", case.chunks)
    snapshot: SnapshotOut = lost.heard_of("s1", SnapshotOut)[case.chunks - 3]
    last = frames[snapshot.chunk]
    chunks, pts_us = snapshot.chunk + 1, last.pts_us + last.frames * last.duration_us
    rig = case.rig()
    request = replace(case.request(), prompt=prompts[0].text) if prompts else case.request()
    rig.open(request, durable=snapshot.durable, chunks=chunks, pts_us=pts_us)
    after = rig.run_shown("s1", 2)
    assert [frame.chunk for frame in after] == [chunks, chunks + 1]
    if case.loop.has_media:
        assert (after[0].discontinuity, after[0].pts_us) == (True, pts_us)
    if case.has(Capability.EXACT_REBUILD):
        case.assert_same(after, frames[chunks : chunks + 2])
    _assert_blocks_come_back(rig)


def check_blocks_stay_within_the_declared_budget(case: ContractCase) -> None:
    """However long a session runs, it holds no more than it was admitted for."""
    if not case.loop.window_blocks:
        return
    rig = case.rig()
    pool = rig.instance.blocks
    assert pool is not None, "a loop with a window has a pool"
    budget = case.loop.blocks_a_session(case.options.history_chunks)
    assert pool.count >= budget * case.options.sessions, "the pool is smaller than declared"
    rig.open(case.request()).push(case.inputs())
    chunks = case.loop.window_blocks // case.loop.chunk_blocks + 6
    while len(rig.shown("s1")) < chunks:
        rig.step()
        assert pool.count - pool.free <= budget
    _assert_blocks_come_back(rig)


def _units(case: ContractCase, chunks: int) -> int:
    """Return how many units it takes to show so many chunks."""
    rig = case.rig()
    rig.open(case.request()).push(case.inputs())
    units = 0
    while len(rig.shown("s1")) < chunks:
        units += len(rig.step())
    return units


def _assert_blocks_come_back(rig: ContractRig) -> None:
    for session in list(rig.drivers):
        rig.close(session)
    if rig.instance.blocks is not None:
        assert rig.instance.blocks.free == rig.instance.blocks.count, "blocks were lost"


Check = Callable[[ContractCase], None]
CHECKS: tuple[Check, ...] = (
    check_plan_is_pure,
    check_states_are_not_edited,
    check_units_keep_to_their_plans,
    check_global_randomness_is_left_alone,
    check_neighbours_change_nothing,
    check_seeds_differ,
    check_controls_show_in_the_next_chunk,
    check_interrupting_at_every_boundary_goes_on_from_the_last_commit,
    check_closing_at_every_boundary_returns_every_block,
    check_a_bad_step_at_every_boundary_is_rolled_back,
    check_a_step_that_stays_bad_ends_its_session_alone,
    check_rewinding_copies_nothing,
    check_a_fork_shares_its_blocks,
    check_a_durable_state_goes_on,
    check_blocks_stay_within_the_declared_budget,
)
