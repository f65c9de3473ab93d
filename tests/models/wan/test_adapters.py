"""LoRAs of Wan: chosen while a session runs, without a trace of what was chosen before."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import contract
import pytest
import torch
from contract import ContractCase
from loop_rig import Rig
from lora_files import pairs_for, write_peft
from tiny_wan import TinyWan, tiny_options
from torch import Tensor
from wan_rig import cache_of, components_of, kinds, opened, pictures, shown

from reverie.engine.emissions import ControlApplied
from reverie.engine.inputs import ControlId, ControlInput, ParameterInput, PromptInput
from reverie.models.contract.controls import NO_CONTROLS, Controls, ParameterSpec
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import AdapterOption
from reverie.models.contract.loop import LoopRequest, StepBatch, StepUnit, WorkPlan
from reverie.models.services.adapters import Mix
from reverie.models.wan.checkpoint.loading import TINY, TINY_CAUSAL, TINY_GRID
from reverie.models.wan.description import wan_spec
from reverie.models.wan.kernel import WanKernel
from reverie.models.wan.network.transformer import WanTransformer
from reverie.models.wan.state import OnPrompt, WanPhase, WanState

LAYERS = (
    "self_attn.q",
    "self_attn.k",
    "self_attn.v",
    "self_attn.o",
    "cross_attn.k",
    "cross_attn.v",
    "ffn.0",
    "ffn.2",
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two LoRAs for every block."""
    folder = tmp_path_factory.mktemp("loras")
    with torch.device("meta"):
        model = WanTransformer(TINY)
    paths = [f"blocks.{block}.{layer}" for block in range(TINY.num_layers) for layer in LAYERS]
    return {
        name: write_peft(folder / name, pairs_for(model, paths, seed))
        for name, seed in (("a", 1), ("b", 2))
    }


def options_of(files: Mapping[str, Path], *names: str) -> tuple[AdapterOption, ...]:
    return tuple(AdapterOption(name, str(files[name])) for name in names)


def rig_with(*adapters: AdapterOption, sessions: int = 4, loop: str = "") -> Rig:
    options = replace(tiny_options(sessions=sessions), adapters=adapters)
    return Rig(TinyWan(), options, loop=loop)


@pytest.fixture(scope="module")
def loaded(files: dict[str, Path]) -> Rig:
    return rig_with(*options_of(files, "a", "b"))


def choose(rig: Rig, session: str = "s1", **strengths: float) -> None:
    rig.drivers[session].push(
        [
            ParameterInput(ControlId(name), f"lora_{name}", value)
            for name, value in strengths.items()
        ]
    )


# --- by hand: every state is seen, and no block is given back ---


def step(rig: Rig, state: WanState, controls: Controls = NO_CONTROLS) -> WanState:
    plan = rig.kernel.plan_step(state, controls)
    assert isinstance(plan, WorkPlan)
    assert rig.instance.blocks is not None
    blocks = rig.instance.blocks.reserve(plan.writes)
    acting = controls if plan.takes_controls else NO_CONTROLS
    unit = StepUnit(plan, state, acting, blocks)
    [result] = rig.kernel.run_step(StepBatch(rig.instance, (unit,)))
    assert isinstance(result.state, WanState)
    return result.state


def after_chunks(rig: Rig, state: WanState, chunks: int) -> WanState:
    for _ in range(chunks):
        while state.phase is not WanPhase.CONTEXT:
            state = step(rig, state)
        state = step(rig, state)
    return state


def begun(rig: Rig, parameters: Mapping[str, float], chunks: int) -> WanState:
    request = LoopRequest("s1", 7, "a lake", parameters)
    return after_chunks(rig, rig.kernel.init_state(request, rig.instance), chunks)


def only_latents(rig: Rig, made: WanState, mix: Mix) -> WanState:
    """Return a state with the clean latents of another, and nothing else that was computed.

    Its cache is not a number anywhere: what reads of it before it is written shows.
    """
    assert isinstance(rig.kernel, WanKernel)
    pool, parts = rig.instance.blocks, components_of(rig)
    assert pool is not None
    blocks = pool.reserve(len(made.blocks))
    for block in blocks:
        pool.view(block).fill_(float("nan"))
    rows = parts.text.encode(made.prompt)
    with parts.adapters.applied(mix), torch.no_grad():
        text = parts.transformer.read_prompt(rows[None])
    return WanState(
        made.seed,
        made.prompt,
        phase=WanPhase.RECACHE,
        frame=made.frame,
        mix=mix,
        stale=True,
        text=text,
        window=made.window,
        sink=made.sink,
        decoder=made.decoder,
        blocks=blocks,
    )


def next_latents(rig: Rig, state: WanState) -> Tensor:
    while state.phase is not WanPhase.CONTEXT:
        state = step(rig, state)
    return torch.stack([frame.clean_Zhw for frame in state.fresh])


@pytest.mark.parametrize("chunks", [1, 2, 5], ids=["young", "grown", "slid"])
class TestNoTrace:
    """What is computed after a switch is what would be, had the adapter before never been."""

    def test_after_another_adapter(self, chunks: int, loaded: Rig, files: dict[str, Path]) -> None:
        rig = loaded = rig_with(*options_of(files, "a", "b"), sessions=16)
        made = begun(rig, {"lora_a": 1.0}, chunks)
        turned = step(rig, made, Controls(parameters={"lora_a": 0.0, "lora_b": 0.5}))
        assert turned.mix == (("b", 0.5),)
        recached = step(rig, turned)
        other = rig_with(*options_of(files, "b"), sessions=16)
        reference = step(other, only_latents(other, made, (("b", 0.5),)))
        assert torch.equal(cache_of(rig, recached), cache_of(other, reference))
        assert not torch.equal(cache_of(rig, recached), cache_of(loaded, made))
        assert torch.equal(next_latents(rig, recached), next_latents(other, reference))

    def test_after_none(self, chunks: int, files: dict[str, Path]) -> None:
        rig = rig_with(*options_of(files, "a"), sessions=16)
        made = begun(rig, {"lora_a": 1.0}, chunks)
        recached = step(rig, step(rig, made, Controls(parameters={"lora_a": 0.0})))
        other = rig_with(sessions=16)
        reference = step(other, only_latents(other, made, ()))
        assert torch.equal(cache_of(rig, recached), cache_of(other, reference))
        assert torch.equal(next_latents(rig, recached), next_latents(other, reference))

    def test_a_window_that_a_prompt_leaves_alone_is_computed_anew(
        self, chunks: int, files: dict[str, Path]
    ) -> None:
        rig = rig_with(*options_of(files, "a"), sessions=16)
        plain = replace(components_of(rig).causal, recache=False)
        parts = replace(components_of(rig), causal=plain)
        rig.kernel = WanKernel(rig.kernel.spec, parts, rig.instance)
        made = begun(rig, {"lora_a": 1.0}, chunks)
        turned = step(rig, made, Controls(parameters={"lora_a": 0.0}))
        assert turned.phase is WanPhase.RECACHE
        recached = step(rig, turned)
        other = rig_with(sessions=16)
        reference = step(other, only_latents(other, made, ()))
        assert torch.equal(cache_of(rig, recached), cache_of(other, reference))


# --- under the driver ---


class TestSwitch:
    """A strength is a parameter like any, with its receipt."""

    def test_an_operators_adapters_are_parameters_of_every_loop(self, loaded: Rig) -> None:
        for loop in loaded.instance.spec.loops:
            found = {spec.name: spec for spec in loop.parameters}
            assert (found["lora_a"].default, found["lora_a"].high) == (0.0, 2.0)
            assert loop.rebuild_blocks == loop.window_blocks
        loaded.instance.spec.validate()

    def test_it_takes_effect_before_the_next_denoise_call(self, loaded: Rig) -> None:
        rig = loaded.again()
        opened(rig)
        rig.run_chunks("s1", 1)
        rig.run(lambda: kinds(rig, 1)[-1:] == ["denoise"])
        choose(rig, a=1.0)
        rig.run_chunks("s1", 1)
        assert kinds(rig, 1)[:5] == ["context", "denoise", "adapt", "recache", "denoise"]
        [receipt] = rig.heard_of("s1", ControlApplied)
        assert (receipt.control, receipt.chunk) == ("a", 1)
        assert rig.drivers["s1"].state.mix == (("a", 1.0),)
        rig.close("s1")

    @pytest.mark.parametrize(
        ("on_prompt", "second"),
        [
            (OnPrompt.WAIT, ["context", "denoise", "denoise"]),
            (
                OnPrompt.RESTART,
                ["context", "denoise", "adapt", "recache", "denoise", "denoise"],
            ),
        ],
    )
    def test_it_waits_or_begins_the_block_again_as_the_session_asks(
        self, on_prompt: OnPrompt, second: list[str], loaded: Rig
    ) -> None:
        rig = loaded.again()
        opened(rig, parameters={"on_prompt": on_prompt})
        rig.run_chunks("s1", 1)
        rig.run(lambda: kinds(rig, 1)[-1:] == ["denoise"])
        choose(rig, a=1.0)
        rig.run_chunks("s1", 2)
        assert [kind for kind in kinds(rig, 1) if kind != "decode"] == second
        assert rig.drivers["s1"].state.mix == (("a", 1.0),)
        rig.close("s1")

    @pytest.mark.parametrize("on_prompt", [OnPrompt.FINISH, OnPrompt.RESTART])
    def test_a_dial_that_never_rests_does_not_hold_the_block_up(
        self, on_prompt: OnPrompt, loaded: Rig
    ) -> None:
        rig = loaded.again()
        opened(rig, parameters={"on_prompt": on_prompt})
        rig.run_chunks("s1", 1)
        for turn in range(40):
            choose(rig, a=0.01 * (turn + 1))
            rig.step()
        assert len(rig.frames("s1")) >= 3
        rig.close("s1")

    def test_a_prompt_and_an_adapter_are_taken_up_together(self, loaded: Rig) -> None:
        rig = loaded.again()
        opened(rig)
        rig.run_chunks("s1", 1)
        rig.drivers["s1"].push([PromptInput(ControlId("p"), "night")])
        choose(rig, b=1.0)
        rig.run_chunks("s1", 1)
        assert kinds(rig, 1)[:3] == ["context", "encode_text", "recache"]
        assert len(rig.heard_of("s1", ControlApplied)) == 2
        rig.close("s1")

    def test_a_strength_that_stays_the_same_computes_nothing_anew(self, loaded: Rig) -> None:
        rig = loaded.again()
        opened(rig, parameters={"lora_a": 0.5})
        rig.run_chunks("s1", 1)
        choose(rig, a=0.5)
        rig.run_chunks("s1", 1)
        assert {"adapt", "recache"}.isdisjoint(kinds(rig, 1))
        [receipt] = rig.heard_of("s1", ControlApplied)
        assert receipt.chunk == 1
        rig.close("s1")

    def test_a_world_gone_back_to_is_taken_up_under_what_is_in_effect(self, loaded: Rig) -> None:
        rig = loaded.again()
        driver = opened(rig)
        rig.run_chunks("s1", 2)
        choose(rig, a=1.0)
        rig.run_chunks("s1", 1)
        driver.rewind(1)
        rig.run_chunks("s1", 1)
        assert "adapt" in kinds(rig, 3)
        assert driver.state.mix == (("a", 1.0),)
        rig.close("s1")

    def test_an_adapter_changes_what_is_made(self, loaded: Rig) -> None:
        rig = loaded.again()
        opened(rig, "s1")
        opened(rig, "s2", parameters={"lora_a": 1.0})
        [one], [other] = rig.run_chunks("s1", 1), rig.run_chunks("s2", 1)
        assert (one.frames != other.frames).any()
        for session in ("s1", "s2"):
            rig.close(session)

    def test_a_clip_that_comes_with_an_adapter_is_gone_on_with_under_it(self, loaded: Rig) -> None:
        rig = loaded.again()
        driver = opened(rig)
        rig.run_chunks("s1", 1)
        choose(rig, a=1.0)
        driver.push(shown("clip", pictures(5)))
        rig.run_chunks("s1", 3)
        assert driver.state.mix == (("a", 1.0),)
        assert not driver.state.stale
        rig.close("s1")


class TestCamera:
    """What a camera shows, painted over under adapters."""

    def test_another_adapter_paints_over_the_newest_picture_again(
        self, files: dict[str, Path]
    ) -> None:
        rig = rig_with(*options_of(files, "a"), loop="restyle")
        driver = opened(rig)
        driver.push(shown("camera", pictures(9)))
        rig.run_idle()
        before = len(rig.frames("s1"))
        choose(rig, a=1.0)
        rig.run_idle()
        assert len(rig.frames("s1")) == before + 1
        assert (driver.state.mix, driver.state.stale) == ((("a", 1.0),), False)
        assert {"adapt", "recache", "encode_camera"} <= set(kinds(rig, before))
        [receipt] = [told for told in rig.heard_of("s1", ControlApplied) if told.control == "a"]
        assert receipt.chunk == before


class AdaptedWan(TinyWan):
    """Says of its adapter before it is loaded."""

    spec = wan_spec(
        TINY, TINY_CAUSAL, TINY_GRID, adapters=(ParameterSpec("lora_a", 0.0, 0.0, 2.0),)
    )


@dataclass(frozen=True)
class Choosing(ContractCase):
    """The contract's checks with another adapter where they have another prompt."""

    def inputs(self) -> tuple[ControlInput, ...]:
        return (ParameterInput(ControlId("a"), "lora_a", 1.0),)

    def controls(self) -> Controls:
        return Controls(parameters={"lora_a": 1.0})


@pytest.mark.parametrize(
    "check",
    [
        contract.check_plan_is_pure,
        contract.check_states_are_not_edited,
        contract.check_controls_show_in_the_next_chunk,
        contract.check_closing_at_every_boundary_returns_every_block,
        contract.check_a_bad_step_at_every_boundary_is_rolled_back,
        contract.check_rewinding_copies_nothing,
        contract.check_blocks_stay_within_the_declared_budget,
    ],
    ids=lambda check: check.__name__.removeprefix("check_"),
)
def test_choosing_holds_to_the_contract(check: contract.Check, files: dict[str, Path]) -> None:
    options = replace(tiny_options(), adapters=options_of(files, "a"))
    check(Choosing("adapted", AdaptedWan, first_frames=9, options=options))


def test_what_is_left_of_a_lost_worker_goes_on_under_the_mix_in_effect(
    files: dict[str, Path],
) -> None:
    rig = rig_with(*options_of(files, "a"), sessions=16)
    made = begun(rig, {"lora_a": 1.0}, 2)
    durable = rig.kernel.durable(made)
    assert durable is not None
    other = rig_with(*options_of(files, "a"), sessions=16)
    request = LoopRequest("s1", 7, "a lake", {"lora_a": 1.0})
    state = other.kernel.revive(durable, request, other.instance)
    while state.phase is not WanPhase.BLOCK:
        state = step(other, state)
    assert torch.equal(cache_of(other, state), cache_of(rig, made))
    assert torch.equal(next_latents(other, state), next_latents(rig, made))


class TestTogether:
    """Equal strengths share a pass, others do not."""

    def test_sessions_of_one_mix_run_in_one_batch(self, loaded: Rig) -> None:
        rig = loaded.again()
        mixes = {"s1": 0.0, "s2": 1.0, "s3": 1.0, "s4": 0.5}
        for session, strength in mixes.items():
            opened(rig, session, parameters={"lora_a": strength})
        rig.run(lambda: all(len(rig.frames(session)) >= 2 for session in mixes))
        most = {
            session: max(unit.batch for unit in rig.units(session) if unit.kind == "denoise")
            for session in mixes
        }
        assert most == {"s1": 1, "s2": 2, "s3": 2, "s4": 1}
        for session in mixes:
            rig.close(session)

    def test_a_neighbour_under_another_mix_changes_nothing(self, loaded: Rig) -> None:
        alone = loaded.again()
        opened(alone, parameters={"lora_a": 1.0})
        wanted = alone.run_chunks("s1", 3)
        rig = loaded.again()
        opened(rig, parameters={"lora_a": 1.0})
        opened(rig, "s2", seed=8, parameters={"lora_b": 2.0})
        made = rig.run_chunks("s1", 3)
        assert all((a.frames == b.frames).all() for a, b in zip(made, wanted, strict=True))
        for each, session in ((alone, "s1"), (rig, "s1"), (rig, "s2")):
            each.close(session)


class TestMerged:
    """Part of the weights."""

    def test_it_makes_what_it_makes_beside_and_has_its_own_version(
        self, loaded: Rig, files: dict[str, Path]
    ) -> None:
        merged = rig_with(AdapterOption("a", str(files["a"]), merged=True, strength=1.0))
        assert merged.instance.weights_version != loaded.instance.weights_version
        names = [spec.name for spec in merged.kernel.spec.parameters]
        assert not [name for name in names if name.startswith("lora")]
        one = begun(merged, {}, 2)
        other = begun(loaded.again(), {"lora_a": 1.0}, 2)
        for mine, theirs in zip(one.window, other.window, strict=True):
            torch.testing.assert_close(mine.clean_Zhw, theirs.clean_Zhw, atol=1e-4, rtol=1e-4)

    def test_one_that_does_not_fit_is_refused_with_all_that_is_wrong(
        self, files: dict[str, Path], tmp_path: Path
    ) -> None:
        model = torch.nn.ModuleDict({"elsewhere": torch.nn.Linear(4, 4)})
        bad = write_peft(tmp_path, pairs_for(model, ("elsewhere",), 1))
        with pytest.raises(CheckpointError, match=r"adapter bad: .*transformer\.elsewhere"):
            rig_with(*options_of(files, "a"), AdapterOption("bad", str(bad)))
