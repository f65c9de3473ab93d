"""A causal model with a cache, by the three methods: `reverie serve --model examples/tide.py:Tide`.

A picture of 16 x 16 cells is made of noise in four steps, each a unit of work; every cell attends
to the five pictures before, whose keys and values are cache blocks. The weights are random: what
you see is a tide that never repeats and that a key can pull. `docs/adding-a-model.md` walks through
it.
"""

from dataclasses import dataclass, replace
from hashlib import blake2b

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, scaled_dot_product_attention

from reverie.models.contract.blocks import BlockId, BlockPool
from reverie.models.contract.controls import Controls, ControlSpec, Merge
from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.contract.loop import (
    BatchKey,
    FrameOutput,
    Idle,
    LoopKernel,
    LoopRequest,
    StepBatch,
    StepResult,
    StepUnit,
    WorkPlan,
)
from reverie.models.contract.seeds import normal
from reverie.models.contract.spec import (
    CacheSpec,
    Capability,
    CapabilityMatrix,
    ComponentSpec,
    LoopSpec,
    ModelSpec,
    ProgramSpec,
    StreamKind,
    StreamSpec,
)

CELLS, WIDTH, WINDOW, STEPS, PIXELS = 256, 32, 5, 4, 128
PULL = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}

LOOP = LoopSpec(
    name="world_model",
    components=("tide",),
    streams=(StreamSpec("video", StreamKind.VIDEO, PIXELS, PIXELS, 12.0),),
    controls=(ControlSpec("move", Merge.EDGES, keys=tuple(PULL), label="Pull"),),
    window_blocks=WINDOW,
    chunk_blocks=1,
    prompt_tokens=64,
    caches=("pictures",),
)
SPEC = ModelSpec(
    name="tide",
    title="A tide that can be pulled",
    licence="CC0-1.0",
    components=(ComponentSpec("tide", "attention over the pictures before"),),
    loops=(LOOP,),
    programs=(ProgramSpec("world", ("world_model",)),),
    capabilities=CapabilityMatrix(
        {
            "world_model": frozenset(
                {Capability.TEXT_PROMPT, Capability.ACTIONS, Capability.REWIND, Capability.FORK}
            )
        }
    ),
    precisions=("float32",),
    caches=(CacheSpec("pictures", ("world_model",), ("context",), (2, CELLS, WIDTH)),),
)


class TideNet(nn.Module):
    """One call: cells look at themselves and at the past, and say what they become."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.qkv = nn.Linear(3, WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.leave = nn.Linear(WIDTH, 3)

    def forward(self, x_N3: Tensor, tint_D: Tensor, past: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the clean cells [N, 3], and keys and values [2, N, D] for the cache."""
        q, k, v = self.qkv(torch.tanh(2 * self.enter(x_N3) + tint_D)).chunk(3, dim=-1)
        keys = k if past is None else torch.cat([past[:, 0].flatten(0, 1), k])
        values = v if past is None else torch.cat([past[:, 1].flatten(0, 1), v])
        mixed = scaled_dot_product_attention(q[None], keys[None], values[None])[0]
        return torch.sigmoid(5 * self.leave(q + 2 * mixed)), torch.stack((k, v))


@dataclass(frozen=True, slots=True)
class TideState:
    """Immutable: a step returns the next one. `blocks` is what the runtime counts and keeps."""

    seed: int
    prompt: str
    frame: int = 0
    step: int = 0
    pull: tuple[int, int] = (0, 0)
    point_N3: Tensor | None = None
    made_N3: Tensor | None = None
    blocks: tuple[BlockId, ...] = ()


class TideKernel(LoopKernel[TideState]):
    """The model owns the step; no `while`, no session, no clock."""

    spec = LOOP

    def __init__(self, net: TideNet, instance: ModelInstance) -> None:
        self._net, self._instance = net, instance

    def init_state(self, request: LoopRequest, instance: ModelInstance) -> TideState:
        """Bind what the session asks for; nothing is computed."""
        return TideState(request.seed, request.prompt)

    def plan_step(self, state: TideState, controls: Controls) -> WorkPlan | Idle:
        """Say what comes next: denoise, show, then write the picture to the cache."""
        if state.made_N3 is None:
            last = state.step + 1 == STEPS
            return self._plan("denoise", takes=state.step == 0, commits=last)
        if state.step < STEPS:
            return self._plan("show", shows=True)
        return self._plan("context", writes=1)

    def run_step(self, batch: StepBatch[TideState]) -> list[StepResult[TideState]]:
        """Run exactly the planned units."""
        return [getattr(self, f"_{unit.plan.kind}")(unit) for unit in batch.units]

    def _denoise(self, unit: StepUnit[TideState]) -> StepResult[TideState]:
        state = unit.state
        if state.step == 0:
            pressed = unit.controls.keys.get("move")
            key = pressed.acting() if pressed else None
            state = replace(
                state,
                prompt=unit.controls.prompt if unit.controls.prompt is not None else state.prompt,
                pull=PULL[key] if key else (0, 0),
                point_N3=swell(state.seed, state.frame),
            )
        clean, _ = self._call(state)
        if state.step + 1 == STEPS:
            return StepResult(replace(state, step=0, point_N3=None, made_N3=clean), checks=(clean,))
        level = 1 - (state.step + 1) / STEPS
        point = (1 - level) * clean + level * swell(state.seed, state.frame)
        return StepResult(replace(state, step=state.step + 1, point_N3=point), checks=(point,))

    def _show(self, unit: StepUnit[TideState]) -> StepResult[TideState]:
        assert unit.state.made_N3 is not None, "a picture was committed"
        cells = unit.state.made_N3.T.reshape(1, 3, 16, 16)
        picture = interpolate(cells, (PIXELS, PIXELS), mode="bicubic").clamp(0, 1)
        output = FrameOutput("video", picture.permute(0, 2, 3, 1))
        return StepResult(replace(unit.state, step=STEPS), (output,))

    def _context(self, unit: StepUnit[TideState]) -> StepResult[TideState]:
        assert unit.state.made_N3 is not None, "a picture was shown"
        assert self._instance.blocks is not None, "the instance has a cache"
        _, cached = self._call(replace(unit.state, point_N3=unit.state.made_N3))
        self._instance.blocks.view(unit.blocks[0]).copy_(cached)
        blocks = (*unit.state.blocks, *unit.blocks)[-WINDOW:]
        frame = unit.state.frame + 1
        return StepResult(replace(unit.state, frame=frame, step=0, made_N3=None, blocks=blocks))

    @torch.no_grad()
    def _call(self, state: TideState) -> tuple[Tensor, Tensor]:
        assert self._instance.blocks is not None, "the instance has a cache"
        assert state.point_N3 is not None, "a picture is in the making"
        past = self._instance.blocks.gather(state.blocks) if state.blocks else None
        x, y = state.pull
        pulled = state.point_N3.view(16, 16, 3).roll((y, x), (0, 1)).view(CELLS, 3)
        told = pulled + 0.2 * torch.tensor([x, y, x - y])
        clean, cached = self._net(told, tint(state.prompt), past)
        return clean, cached

    def _plan(self, kind: str, *, takes: bool = False, commits: bool = False,
              shows: bool = False, writes: int = 0) -> WorkPlan:  # fmt: skip
        return WorkPlan(
            kind=kind,
            batch_key=BatchKey.of(self._instance, LOOP.name, kind),
            writes=writes,
            streams=("video",) if shows else (),
            takes_controls=takes,
            commits=commits,
            shows=shows,
        )


def swell(seed: int, frame: int) -> Tensor:
    """Return the noise of a picture: waves that roll on from one picture to the next."""
    waves = sum(
        normal(seed, "swell", frame // 12 + turn, (1, 3, 4, 4)) * weight
        for turn, weight in ((0, 1 - frame % 12 / 12), (1, frame % 12 / 12))
    )
    assert isinstance(waves, Tensor)
    return 2 * interpolate(waves, (16, 16), mode="bicubic")[0].flatten(1).T


def tint(prompt: str) -> Tensor:
    """Return what words do to every cell."""
    digest = blake2b(prompt.lower().encode(), digest_size=WIDTH).digest()
    return torch.tensor(list(digest)) / 128 - 1


class Tide:
    """The family: what it is, how it is loaded, what runs its loop."""

    spec = SPEC

    def load(self, options: LoadOptions) -> ModelInstance:
        """Make the weights and the cache pool."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(3)
            self._net = TideNet().eval().requires_grad_(False)
        blocks = options.sessions * LOOP.blocks_a_session(options.history_chunks)
        pool = BlockPool(blocks, SPEC.caches[0].shape)
        parts = {"tide": self._net}
        return ModelInstance("tide", SPEC, torch.device("cpu"), torch.float32, "3", parts, pool)

    def kernel(self, loop: str, instance: ModelInstance) -> TideKernel:
        """Return what runs the loop."""
        return TideKernel(self._net, instance)
