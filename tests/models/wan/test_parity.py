"""The public models' numbers, call by call, through the driver."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from loop_rig import Rig
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from reverie.engine.inputs import ControlId, PromptInput
from reverie.models.instance import LoadOptions, ModelInstance
from reverie.models.loop import LoopKernel, LoopRequest, StepBatch, StepResult
from reverie.models.wan.block import KeysAndValues
from reverie.models.wan.config import CausalConfig, WanConfig
from reverie.models.wan.features import FeatureCache
from reverie.models.wan.kernel import WanKernel
from reverie.models.wan.parts import WanParts
from reverie.models.wan.schedule import FlowSchedule
from reverie.models.wan.spec import assemble, wan_spec
from reverie.models.wan.state import WanState
from reverie.models.wan.transformer import CallOutput, WanTransformer

GOLDENS = Path(__file__).resolve().parents[2] / "goldens"
WEIGHTS = GOLDENS / "wan_dit" / "weights_original.safetensors"
"""All the recordings were made with these."""
TOLERANCE = 2e-5


@dataclass
class RecordedNoise:
    """The draws of a recording."""

    numbers: dict[str, Tensor]
    block: int

    def first(self, seed: int, frame: int, shape: tuple[int, ...]) -> Tensor:
        return self.numbers["in.noise"][0, frame : frame + shape[0]]

    def again(self, seed: int, frame: int, step: int, shape: tuple[int, ...]) -> Tensor:
        return self.numbers[f"in.renoise.{frame // self.block}"]


@dataclass
class RecordedText:
    """The encoded prompts of a recording, by their letter."""

    numbers: dict[str, Tensor]

    def encode(self, prompt: str) -> Tensor:
        return self.numbers[f"in.prompt.{prompt}"]


class GreyPictures:
    """Latents are what is compared here; every latent frame becomes a grey picture."""

    def decode(
        self, latents_BZhw: Tensor, cache: FeatureCache | None
    ) -> tuple[Tensor, FeatureCache]:
        B, _, height, width = latents_BZhw.shape
        return torch.zeros(B, 1 if cache is None else 4, height * 8, width * 8, 3), ("Rep",)

    def encode(
        self, pictures_BFHWC: Tensor, cache: FeatureCache | None
    ) -> tuple[Tensor, FeatureCache]:
        raise AssertionError("nothing is pushed here")


@dataclass
class Call:
    """One call of the transformer and what was in the cache after it."""

    x: Tensor
    timestep: Tensor
    first_frame: int
    output: CallOutput
    past: tuple[KeysAndValues, ...] | None
    mute: int

    def cache(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return the keys and values [tokens, heads, d] that the reference has after this call."""
        own = self.output.kv_BFLNAd[0, self.mute :, :, layer]  # [F, 2, N, A, d]
        k, v = (part.flatten(0, 1) for part in own.unbind(1))
        if self.past is None:
            return k, v
        past = self.past[layer]
        return (
            torch.cat([past.k_BAKd[0].transpose(0, 1), k]),
            torch.cat([past.v_BAKd[0].transpose(0, 1), v]),
        )


class Recorder(WanTransformer):
    """Notes every call."""

    def __init__(self, config: WanConfig) -> None:
        super().__init__(config)
        self.calls: list[Call] = []

    def forward(self, *args: Any) -> CallOutput:
        output = super().forward(*args)
        x, timestep, _, past, first_frames, mute = args
        self.calls.append(Call(x, timestep, first_frames[0], output, past, mute))
        return output


@dataclass
class Recording:
    """A golden file and the model that made it."""

    family: str
    case: str
    numbers: dict[str, Tensor] = field(init=False)
    meta: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        path = GOLDENS / self.family / f"{self.case}.safetensors"
        self.numbers = load_file(path)
        with safe_open(path, "pt") as file:
            self.meta = json.loads(file.metadata()["meta"])

    def family_of(self) -> "RecordedFamily":
        return RecordedFamily(self)

    @property
    def causal(self) -> CausalConfig:
        local = self.meta["local_attn_size"]
        return CausalConfig(
            block=self.meta["block"],
            local=local if local > 0 else 21,
            sink=self.meta["sink_size"],
            levels=tuple(self.meta["steps"]),
            shift=self.meta["shift"],
            recache="switch_frame" in self.meta,
            global_sink=self.meta.get("global_sink", True),
        )


class KeepingKernel(WanKernel):
    """Remembers the newest state."""

    newest: WanState

    def run_step(self, batch: StepBatch[WanState]) -> Sequence[StepResult[WanState]]:
        results = super().run_step(batch)
        self.newest = results[-1].state
        return results


class RecordedFamily:
    """A model family made of a recording's weights, noise and prompts."""

    def __init__(self, recording: Recording) -> None:
        config = WanConfig.from_public(recording.meta["cfg"])
        self.transformer = Recorder(config)
        self.transformer.load_state_dict(load_file(WEIGHTS))
        rows, columns = recording.numbers["in.noise"].shape[-2:]
        self._parts = WanParts(
            transformer=self.transformer,
            decoder=GreyPictures(),
            encoder=GreyPictures(),
            text=RecordedText(recording.numbers),
            causal=recording.causal,
            noise=RecordedNoise(recording.numbers, recording.meta["block"]),
            grid=(rows, columns),
        )
        self.spec = wan_spec(config, recording.causal, (rows, columns))

    def load(self, options: LoadOptions) -> ModelInstance:
        return assemble(self._parts, "recorded", options)

    def kernel(self, loop: str, instance: ModelInstance) -> LoopKernel[Any]:
        return KeepingKernel(self.spec.loop(loop), self._parts, instance)


def play(recording: Recording) -> tuple[Rig, list[Call]]:
    """Run a recording's blocks through the driver, prompt switch included."""
    family = recording.family_of()
    rig = Rig(family, LoadOptions(device="cpu", sessions=1, history_chunks=2))
    rig.open(LoopRequest("s1", 0, "A", {"on_prompt": 0}))
    block = recording.causal.block
    switch = recording.meta.get("switch_frame")
    for first in range(0, recording.numbers["in.noise"].shape[1], block):
        if switch is not None and first >= switch:
            rig.drivers["s1"].push([PromptInput(ControlId("switch"), "B")])
            switch = None
        rig.run_chunks("s1", 1)
    due = len(recording.meta["calls"])
    rig.run(lambda: len(family.transformer.calls) >= due)
    return rig, family.transformer.calls[:due]


CASES = [
    ("self_forcing", "global"),
    ("self_forcing", "local6_sink0"),
    ("self_forcing", "local9_sink3"),
    ("longlive", "local9_sink3"),
    ("longlive", "switch_local9_sink3_gs1"),
]


@pytest.fixture(params=CASES, ids="/".join)
def played(request: pytest.FixtureRequest) -> tuple[Recording, list[Call]]:
    recording = Recording(*request.param)
    return recording, play(recording)[1]


def assert_near(made: Tensor, wanted: Tensor, what: str) -> None:
    worst = (made - wanted).abs().max().item()
    assert made.shape == wanted.shape, f"{what}: {tuple(made.shape)}, not {tuple(wanted.shape)}"
    assert worst <= TOLERANCE, f"{what} is off by {worst}"


class TestParity:
    """Self-Forcing and LongLive."""

    def test_every_call_is_the_reference_call(self, played: tuple[Recording, list[Call]]) -> None:
        recording, calls = played
        plan = [(first, frames) for first, frames, *_ in recording.meta["calls"]]
        assert [(call.first_frame, call.x.shape[1]) for call in calls] == plan
        for index, call in enumerate(calls):
            made = {"x": call.x, "t": call.timestep, "flow": call.output.flow_BFZhw}
            for name, value in made.items():
                key = f"call.{index}.{name}"
                assert_near(value, recording.numbers[key], key)

    def test_the_cache_holds_what_the_reference_cache_holds(
        self, played: tuple[Recording, list[Call]]
    ) -> None:
        recording, calls = played
        if recording.case == "global":
            assert not any(".kv." in key for key in recording.numbers), "compare it, then"
            return
        compared = 0
        for index, call in enumerate(calls):
            for layer in range(recording.meta["cfg"]["num_layers"]):
                key = f"call.{index}.kv.{layer}"
                if f"{key}.k" in recording.numbers:
                    for name, made in zip("kv", call.cache(layer), strict=True):
                        wanted = recording.numbers[f"{key}.{name}"][0, : len(made)]
                        assert_near(made, wanted, f"{key}.{name}")
                        compared += 1
        assert compared

    def test_the_latents_are_the_reference_latents(
        self, played: tuple[Recording, list[Call]]
    ) -> None:
        recording, calls = played
        context = recording.causal.context_level
        written = [c for c in calls if float(c.timestep[0, 0]) == context and not c.mute]
        assert_near(
            torch.cat([call.x for call in written], dim=1),
            recording.numbers["out.latents"],
            "latents",
        )

    def test_a_cache_block_holds_what_its_call_wrote(self) -> None:
        rig, calls = play(Recording("self_forcing", "local9_sink3"))
        assert isinstance(rig.kernel, KeepingKernel)
        state, pool = rig.kernel.newest, rig.instance.blocks
        assert pool is not None
        assert len(state.blocks) == 9
        kept = pool.gather(state.blocks)
        sink, newest = calls[2].output.kv_BFLNAd[0], calls[-1].output.kv_BFLNAd[0]
        assert torch.equal(kept[:3], sink)
        assert torch.equal(kept[-3:], newest)


class TestTransformer:
    """One call."""

    def test_it_is_the_bidirectional_wan_when_nothing_was_before(self) -> None:
        with safe_open(WEIGHTS, "pt") as file:
            config = WanConfig.from_public(json.loads(file.metadata()["cfg"]))
        numbers = load_file(GOLDENS / "wan_dit" / "io.safetensors")
        transformer = WanTransformer(config)
        transformer.load_state_dict(load_file(WEIGHTS))
        x_BFZhw = numbers["in.x"].transpose(1, 2)
        timestep = numbers["in.t"][:, None].expand(1, x_BFZhw.shape[1])
        with torch.no_grad():
            prompt = transformer.read_prompt(numbers["in.context"][None])
            flow = transformer(x_BFZhw, timestep, prompt, None, (0,)).flow_BFZhw
        assert_near(flow[0].transpose(0, 1), numbers["out.flow"], "flow")


class TestSchedule:
    """The tables of shift 5 and 8."""

    @pytest.mark.parametrize("shift", [5, 8])
    def test_the_tables_are_the_public_ones(self, shift: int) -> None:
        numbers = load_file(GOLDENS / "self_forcing" / "schedule.safetensors")
        schedule = FlowSchedule.of(float(shift))
        assert torch.equal(schedule.sigmas, numbers[f"shift{shift}.sigmas"])
        assert torch.equal(schedule.timesteps, numbers[f"shift{shift}.timesteps"])
        for key, wanted in numbers.items():
            if key.startswith(f"shift{shift}."):
                levels = tuple(
                    int(level) for level in key.rpartition(".")[2].split("_") if level.isdigit()
                )
                if ".warp." in key:
                    assert schedule.warp(levels) == pytest.approx(wanted.tolist())
                if ".nearest_sigma." in key:
                    found = [schedule.sigma(float(level)) for level in levels]
                    assert found == pytest.approx(wanted.tolist(), abs=1e-7)
