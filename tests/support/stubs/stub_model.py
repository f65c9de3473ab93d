"""A deterministic model for tests: its frames say what made them, and it fails when told to.

Each frame is a grid of 8x8 light and dark cells, one bit each, robust to a lossy codec, with a
checksum, so that a torn or mixed frame cannot be read (`read_stamp`). Light cells are tinted by the
`trail`, a hash over everything that the world has lived through (cache blocks included), so that
equal pixels mean an equal past.

A chunk takes four units: two denoise steps (the first takes the controls, the second commits),
a decode (puts the frames out) and a context pass (fills one cache block).

Session parameters make it misbehave: `fault` (see `Fault`) at `fault_chunk` and `fault_unit`, once,
or with `fault_always` every time; `step_ms` is how long a unit takes. With `STUB_MODEL_LOG` set
to a path, every unit appends its start and end there (`read_log`).

Load it as `<path to this file>:StubFamily`, also in a spawned worker.
"""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import IntEnum
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reverie.models.contract.blocks import BlockId, BlockPool
from reverie.models.contract.controls import Controls, ControlSpec, Merge, ParameterSpec
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import (
    BatchKey,
    Durable,
    FrameOutput,
    LoopKernel,
    LoopRequest,
    PromptNotes,
    StepBatch,
    StepResult,
    StepUnit,
    WorkPlan,
)
from reverie.models.contract.spec import (
    CacheSpec,
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    Lead,
    LoopSpec,
    ModelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)

LOCATION = f"{Path(__file__).resolve()}:StubFamily"
"""What a deployment names to serve this model."""

LOG_VARIABLE = "STUB_MODEL_LOG"
WEIGHTS_VARIABLE = "STUB_MODEL_WEIGHTS"
KEYS = ("up", "down", "left", "right")
SIZE = 64
CELL = 8
WINDOW = 4
BLOCK_WIDTH = 8
PROMPT_WORDS = 32
UNITS = ("denoise", "denoise", "decode", "context")
COMMIT_UNIT = 1
DECODE_UNIT = 2
CONTEXT_UNIT = 3
REBUILD_UNIT = -1


class Fault(IntEnum):
    """How a session can ask the stub to fail."""

    NONE = 0
    RAISE = 1
    HANG = 2
    NAN = 3
    REUSE_BUFFER = 4
    CRASH = 5
    BAD_SHAPE = 6


PARAMETERS = (
    ParameterSpec("step_ms", 0.0, 0.0, 60_000.0, label="Time of one unit"),
    ParameterSpec("fault", 0.0, 0.0, float(max(Fault)), integer=True),
    ParameterSpec("fault_chunk", 0.0, 0.0, 1e6, integer=True),
    ParameterSpec("fault_unit", float(COMMIT_UNIT), 0.0, float(len(UNITS) - 1), integer=True),
    ParameterSpec("fault_always", 0.0, 0.0, 1.0, integer=True),
    ParameterSpec("hang_s", 3600.0, 0.0, 3600.0),
    ParameterSpec("brightness", 0.5, 0.0, 1.0, label="Changes the trail and nothing else"),
)
DEFAULTS: Mapping[str, float] = {parameter.name: parameter.default for parameter in PARAMETERS}


# --- stamps ---

FIELDS = (
    ("session", 10),
    ("chunk", 12),
    ("frame", 5),
    ("prompt", 10),
    ("held", 4),
    ("acting", 3),
    ("presses", 4),
    ("seed", 8),
)
CHECK_BITS = 8


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a frame says of itself.

    Attributes:
        session: `session_mark` of the session's id.
        chunk: the world's own count of chunks, modulo 4096; it goes back with a rewind.
        frame: which frame of its chunk.
        prompt: `prompt_mark` of the prompt in effect.
        held: the keys that were down.
        acting: the key that acted, or None.
        presses: how often any key went down in the step, at most 15.
        seed: the session's, modulo 256.
    """

    session: int
    chunk: int
    frame: int
    prompt: int
    held: frozenset[str]
    acting: str | None
    presses: int
    seed: int


def session_mark(session: str) -> int:
    """Return what a stamp holds for the session called `session`."""
    return _digest("session", session) % 2**10


def prompt_mark(prompt: str) -> int:
    """Return what a stamp holds for `prompt`."""
    return _digest("prompt", prompt) % 2**10


def read_stamp(frame: NDArray[np.uint8]) -> Stamp:
    """Read a frame [H, W, 3] of the stub, decoded from any codec.

    Raises:
        ValueError: it is no whole frame of the stub.
    """
    luma = frame[:SIZE, :SIZE].astype(np.float32).mean(axis=2)
    cells = luma.reshape(SIZE // CELL, CELL, SIZE // CELL, CELL)[:, 2:-2, :, 2:-2].mean(axis=(1, 3))
    number = int("".join("1" if value > 127 else "0" for value in cells.ravel()), 2)
    number, check = divmod(number, 2**CHECK_BITS)
    if check != _digest("check", number) % 2**CHECK_BITS:
        raise ValueError("not a whole frame of the stub")
    values: dict[str, int] = {}
    for name, bits in reversed(FIELDS):
        number, values[name] = divmod(number, 2**bits)
    return Stamp(
        session=values["session"],
        chunk=values["chunk"],
        frame=values["frame"],
        prompt=values["prompt"],
        held=frozenset(key for bit, key in enumerate(KEYS) if values["held"] >> bit & 1),
        acting=KEYS[values["acting"] - 1] if values["acting"] else None,
        presses=values["presses"],
        seed=values["seed"],
    )


def _digest(*parts: object) -> int:
    text = "/".join(map(str, parts)).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")


def _paint(values: Mapping[str, int], trail: int) -> NDArray[np.uint8]:
    number = 0
    for name, bits in FIELDS:
        number = number << bits | values[name] % 2**bits
    number = number << CHECK_BITS | _digest("check", number) % 2**CHECK_BITS
    total = sum(bits for _, bits in FIELDS) + CHECK_BITS
    bit_cells = np.array([int(bit) for bit in f"{number:0{total}b}"]).reshape(8, 8)
    light = np.array([200 + trail % 41, 220, 200 + trail // 41 % 41], dtype=np.uint8)
    dark = np.array([20, 20, 24], dtype=np.uint8)
    cells = np.where(bit_cells[..., None] == 1, light, dark).astype(np.uint8)
    return cells.repeat(CELL, axis=0).repeat(CELL, axis=1)


# --- step log ---


@dataclass(frozen=True, slots=True)
class LogLine:
    """One unit in the step log: `event` is `start`, `end` or `fault`."""

    event: str
    session: str
    kind: str
    chunk: int
    unit: int
    time_ns: int
    process: int
    thread: int


def read_log(path: str | Path) -> list[LogLine]:
    """Return the step log, oldest line first; empty when there is none yet.

    A line that another process is writing right now is not there yet.
    """
    try:
        whole, _, _ = Path(path).read_text().rpartition("\n")
    except FileNotFoundError:
        return []
    return [LogLine(**json.loads(line)) for line in whole.splitlines()]


def _log(event: str, state: "StubState") -> None:
    path = os.environ.get(LOG_VARIABLE)
    if not path:
        return
    line = {
        "event": event,
        "session": state.session,
        "kind": state.kind,
        "chunk": state.chunk,
        "unit": state.unit,
        "time_ns": time.monotonic_ns(),
        "process": os.getpid(),
        "thread": threading.get_ident(),
    }
    with open(path, "a") as file:
        file.write(json.dumps(line) + "\n")


# --- the model ---


@dataclass(frozen=True, slots=True)
class StubState:
    """The world of one session between two units."""

    session: str
    seed: int
    prompt: str
    parameters: Mapping[str, float]
    blocks: tuple[BlockId, ...] = ()
    chunk: int = 0
    unit: int = 0
    trail: int = 0
    held: tuple[str, ...] = ()
    acting: str | None = None
    presses: int = 0
    lost_window: Tensor | None = None

    @property
    def kind(self) -> str:
        """The kind of the next unit."""
        return "rebuild" if self.unit == REBUILD_UNIT else UNITS[self.unit]

    @property
    def fault_due(self) -> Fault:
        """The fault that the next unit should have."""
        at = (self.parameters["fault_chunk"], self.parameters["fault_unit"])
        fault = Fault(int(self.parameters["fault"]))
        if fault is Fault.REUSE_BUFFER or (self.chunk, self.unit) == at:
            return fault
        return Fault.NONE


class StubKernel(LoopKernel[StubState]):
    """The stub's one loop."""

    def __init__(self, spec: LoopSpec, instance: ModelInstance, sleep: Callable[[float], None]):
        self.spec = spec
        self.instance = instance
        self._sleep = sleep
        self._failed: set[tuple[str, int]] = set()
        self._buffer = torch.zeros((spec.chunk_frames, SIZE, SIZE, 3), dtype=torch.uint8)

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> StubState:
        parameters = {**DEFAULTS, **request.parameters}
        return StubState(request.session, request.seed, request.prompt, parameters)

    def plan_step(self, state: StubState, controls: Controls) -> WorkPlan:
        kind = state.kind
        rebuilt = 0 if state.lost_window is None else len(state.lost_window)
        return WorkPlan(
            kind=kind,
            batch_key=BatchKey(
                self.instance.name, self.instance.weights_version, self.spec.name, kind
            ),
            writes={"context": 1, "rebuild": rebuilt}.get(kind, 0),
            streams=("video",) if kind == "decode" else (),
            takes_controls=state.unit == 0,
            commits=state.unit == COMMIT_UNIT,
            shows=state.unit == DECODE_UNIT,
        )

    def run_step(self, batch: StepBatch[StubState]) -> Sequence[StepResult[StubState]]:
        with _logged(batch.units):
            self._sleep(max(unit.state.parameters["step_ms"] for unit in batch.units) / 1000)
            return [self._run(unit) for unit in batch.units]

    def durable(self, state: StubState) -> Durable | None:
        if state.unit != CONTEXT_UNIT:
            return None
        kept = {
            "seed": state.seed,
            "prompt": state.prompt,
            "chunk": state.chunk,
            "trail": state.trail,
            "held": state.held,
        }
        window = self._pool.gather(state.blocks).cpu()
        version = self.instance.weights_version
        return Durable(self.spec.name, version, {"window": window}, json.dumps(kept))

    def revive(self, durable: Durable, request: LoopRequest, instance: ModelInstance) -> StubState:
        kept = json.loads(durable.text)
        return replace(
            self.init_state(request, instance),
            seed=kept["seed"],
            prompt=kept["prompt"],
            chunk=kept["chunk"],
            trail=kept["trail"],
            held=tuple(kept["held"]),
            unit=REBUILD_UNIT,
            lost_window=durable.data["window"],
        )

    @property
    def _pool(self) -> BlockPool:
        assert self.instance.blocks is not None, "the stub always has a pool"
        return self.instance.blocks

    def _run(self, unit: StepUnit[StubState]) -> StepResult[StubState]:
        state = unit.state
        fault = self._claim_fault(state)
        if fault is Fault.RAISE:
            raise RuntimeError(f"the stub was told to fail at chunk {state.chunk}")
        if fault is Fault.HANG:
            time.sleep(state.parameters["hang_s"])
        if fault is Fault.CRASH:
            os._exit(3)
        match state.kind:
            case "rebuild":
                return self._rebuild(unit)
            case "decode":
                return self._decode(state, fault)
            case "context":
                return self._context(unit)
            case _:
                return self._denoise(unit, fault)

    def _denoise(self, unit: StepUnit[StubState], fault: Fault) -> StepResult[StubState]:
        state, notes = unit.state, None
        if state.unit == 0:
            first = not state.chunk and unit.controls.prompt is None
            state, notes = _steered(state, unit.controls)
            notes = _notes(state.prompt) if first else notes
        cached = self._pool.gather(state.blocks).double()
        # Positions count from the window's start, so that a session can run for ever.
        positions = torch.arange(len(cached), dtype=torch.float64)[:, None] + 1
        trail = _digest(
            state.trail,
            float((cached * positions).sum()),
            state.seed,
            state.chunk,
            state.unit,
            state.prompt,
            state.held,
            state.acting,
            state.presses,
            state.parameters["brightness"],
        )
        bad = fault is Fault.NAN
        check = torch.tensor([float("nan") if bad else trail / 2**64])
        # Bad latents would poison everything after them: the trail shows whether they were kept.
        after = replace(state, unit=state.unit + 1, trail=0 if bad else trail)
        return StepResult(after, checks=(check,), notes=notes)

    def _decode(self, state: StubState, fault: Fault) -> StepResult[StubState]:
        frames = torch.from_numpy(np.stack(list(self._frames(state))))
        if fault is Fault.REUSE_BUFFER:
            self._buffer.copy_(frames)
            frames = self._buffer
        if fault is Fault.NAN:
            frames = frames.float() / 255
            frames[0, 0, 0, 0] = float("nan")
        if fault is Fault.BAD_SHAPE:
            frames = frames[:, :-1]
        after = replace(state, unit=CONTEXT_UNIT)
        return StepResult(after, outputs=(FrameOutput("video", frames),))

    def _context(self, unit: StepUnit[StubState]) -> StepResult[StubState]:
        state = unit.state
        words = [_digest(state.trail, word) % 1000 / 1000 for word in range(BLOCK_WIDTH)]
        self._pool.view(unit.blocks[0]).copy_(torch.tensor(words))
        window = (*state.blocks, *unit.blocks)[-WINDOW:]
        return StepResult(replace(state, unit=0, chunk=state.chunk + 1, blocks=window))

    def _rebuild(self, unit: StepUnit[StubState]) -> StepResult[StubState]:
        window = unit.state.lost_window
        assert window is not None, "only a revived state is rebuilt"
        for block, values in zip(unit.blocks, window, strict=True):
            self._pool.view(block).copy_(values)
        after = replace(unit.state, unit=CONTEXT_UNIT, blocks=unit.blocks, lost_window=None)
        return StepResult(after)

    def _frames(self, state: StubState) -> Iterator[NDArray[np.uint8]]:
        values = {
            "session": session_mark(state.session),
            "chunk": state.chunk,
            "prompt": prompt_mark(state.prompt),
            "held": sum(1 << KEYS.index(key) for key in state.held),
            "acting": KEYS.index(state.acting) + 1 if state.acting else 0,
            "presses": min(state.presses, 15),
            "seed": state.seed,
        }
        for frame in range(self.spec.chunk_frames):
            yield _paint({**values, "frame": frame}, state.trail)

    def _claim_fault(self, state: StubState) -> Fault:
        fault = state.fault_due
        if fault in (Fault.NONE, Fault.REUSE_BUFFER) or state.parameters["fault_always"]:
            return fault
        # A restarted worker must know what its predecessor has already failed at.
        logged = {
            (line.session, line.chunk)
            for line in read_log(os.environ.get(LOG_VARIABLE, os.devnull))
            if line.event == "fault"
        }
        at = (state.session, state.chunk)
        if at in self._failed or at in logged:
            return Fault.NONE
        self._failed.add(at)
        _log("fault", state)
        return fault


def _steered(state: StubState, controls: Controls) -> tuple[StubState, PromptNotes | None]:
    keys = controls.keys.get("move")
    notes = None
    if controls.prompt is not None:
        notes = _notes(controls.prompt)
    after = replace(
        state,
        prompt=state.prompt if controls.prompt is None else controls.prompt,
        parameters={**state.parameters, **controls.parameters},
        held=keys.held if keys else (),
        acting=keys.acting() if keys else None,
        presses=sum(edge.down for edge in keys.edges) if keys else 0,
    )
    if look := controls.axes.get("look"):
        after = replace(after, trail=_digest(after.trail, "look", look))
    return after, notes


def _notes(prompt: str) -> PromptNotes:
    words = prompt.split()
    return PromptNotes(
        unknown_words=tuple(word for word in words if word.startswith("blarg")),
        truncated_at=PROMPT_WORDS if len(words) > PROMPT_WORDS else None,
    )


@contextmanager
def _logged(units: Sequence[StepUnit[StubState]]) -> Iterator[None]:
    for unit in units:
        _log("start", unit.state)
    try:
        yield
    finally:
        for unit in units:
            _log("end", unit.state)


@dataclass(frozen=True)
class StubFamily:
    """The stub as a model family.

    Attributes:
        frames: frames a chunk, at most 32.
        rate_hz: frames a second of media time.
        sleep: how a unit spends its `step_ms`; a fake clock's avoids waiting.
        kernel_class: what variants of the stub replace.
    """

    frames: int = 12
    rate_hz: float = 24.0
    lead_chunks: int = 1
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    kernel_class: ClassVar[type[StubKernel]] = StubKernel

    @property
    def spec(self) -> ModelSpec:
        loop = LoopSpec(
            name="world_model",
            components=("stub",),
            streams=(StreamSpec("video", StreamKind.VIDEO, SIZE, SIZE, self.rate_hz),),
            controls=(
                ControlSpec("move", Merge.EDGES, KEYS, label="Walk"),
                ControlSpec("look", Merge.SUM, label="Turn"),
            ),
            parameters=PARAMETERS,
            chunk_frames=self.frames,
            window_blocks=WINDOW,
            chunk_blocks=1,
            prompt_tokens=PROMPT_WORDS,
            caches=("stub",),
        )
        return ModelSpec(
            name="stub",
            title="A deterministic model for tests",
            licence="Apache-2.0",
            components=(ComponentSpec("stub", "everything"),),
            loops=(loop,),
            programs=(ProgramSpec("world", ("world_model",), Lead(self.lead_chunks)),),
            capabilities=CapabilityMatrix({"world_model": frozenset(Capability)}),
            caches=(CacheSpec("stub", ("world_model",), ("context", "rebuild"), (BLOCK_WIDTH,)),),
        )

    def load(self, options: LoadOptions) -> ModelInstance:
        spec = self.spec
        count = spec.loops[0].blocks_a_session(options.history_chunks) * options.sessions
        return ModelInstance(
            name="stub-0",
            spec=spec,
            device=torch.device("cpu"),
            dtype=torch.float32,
            weights_version=os.environ.get(WEIGHTS_VARIABLE, "stub-1"),
            blocks=BlockPool(count, (BLOCK_WIDTH,)),
        )

    def kernel(self, loop: str, instance: ModelInstance) -> StubKernel:
        return self.kernel_class(self.spec.loop(loop), instance, self.sleep)


def stub_request(
    session: str = "s1", seed: int = 7, prompt: str = "a frozen lake", **parameters: float
) -> LoopRequest:
    """Return a request with every parameter filled in."""
    return LoopRequest(session, seed, prompt, {**DEFAULTS, **parameters})


__all__ = [
    "DEFAULTS",
    "KEYS",
    "LOCATION",
    "LOG_VARIABLE",
    "SIZE",
    "Fault",
    "LogLine",
    "Stamp",
    "StubFamily",
    "StubKernel",
    "StubState",
    "prompt_mark",
    "read_log",
    "read_stamp",
    "session_mark",
    "stub_request",
]
