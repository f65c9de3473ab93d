"""The public DIAMOND: its numbers, from the files that are loaded to the pictures that are seen."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from golden import Golden, assert_near
from loop_rig import Rig
from PIL import Image
from torch import Tensor, nn

from reverie.engine.inputs import AxisInput, ControlId, ControlInput, KeysInput
from reverie.models.contract.controls import Controls, KeyEdge, KeyInput
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.loop import LoopRequest
from reverie.models.diamond.actions import KEYS, QUALITY, action_of
from reverie.models.diamond.config import ATARI, CSGO, GameConfig, SamplerConfig, UNetConfig
from reverie.models.diamond.network.denoiser import Conditioners, Denoiser
from reverie.models.diamond.spec import Diamond
from reverie.models.diamond.state import DiamondState

TOLERANCE = 1e-5
SAMPLER_FIELDS = {
    "num_steps_denoising": "steps",
    "s_churn": "churn",
    "s_tmin": "churn_low",
    "s_tmax": "churn_high",
    "s_noise": "churn_noise",
    "s_cond": "past_sigma",
}
NAMES = {"left ctrl": "ctrl", "left shift": "shift"}
PONG_KEYS = ({"right"}, {"left"}, set[str](), {"left", "fire"})


def sampler_of(public: dict[str, Any]) -> SamplerConfig:
    given = {SAMPLER_FIELDS.get(name, name): value for name, value in public.items()}
    for made_here in ("sigmas", "frames", "seed", "nearest_rounding_edge"):
        given.pop(made_here, None)
    return SamplerConfig(heun=given.pop("order", 1) == 2, **given)


def network_of(network: UNetConfig, public: dict[str, Any]) -> UNetConfig:
    return replace(
        network,
        channels=tuple(public["channels"]),
        depths=tuple(public["depths"]),
        attention=tuple(map(bool, public["attn_depths"])),
        condition=public["cond_channels"],
    )


@dataclass
class Played:
    """A recording and what was made of its weights, draws and presses.

    Attributes:
        small: the world model's picture of each frame.
        shown: the same as a person sees it.
        calls: pictures before and after each call of a network.
    """

    golden: Golden
    run: str
    small: list[Tensor] = field(default_factory=list)
    shown: list[Tensor] = field(default_factory=list)
    calls: dict[str, list[tuple[Tensor, Tensor]]] = field(default_factory=dict)

    def listen(self, name: str, network: nn.Module) -> None:
        calls = self.calls.setdefault(name, [])

        def note(_: nn.Module, given: tuple[Any, ...], made: Tensor) -> None:
            calls.append((given[0][0], made[0]))

        network.register_forward_hook(note)

    def draw(self, seed: int, stream: str, index: int, shape: tuple[int, ...]) -> Tensor:
        return self.golden[f"{self.run}.draw.{index}.{stream}"].reshape(shape)

    def play(self, rig: Rig, presses: list[list[ControlInput]], quality: float | None) -> None:
        for name, network in rig.instance.components.items():
            self.listen(name, network)
        parameters = {} if quality is None else {QUALITY: quality}
        driver = rig.open(LoopRequest("s1", 0, parameters=parameters))
        rig.run_chunks("s1", 1)  # the start
        for inputs in presses:
            driver.push(inputs)
            rig.run_chunks("s1", 1)
            state = driver._context.states.history.newest.state
            assert isinstance(state, DiamondState)
            self.small.append(state.pictures[-1])
            self.shown.append(state.shown_CHW)

    def assert_calls(self, name: str, recorded: str) -> None:
        wanted = sorted(
            (key for key in self.golden.below(f"{self.run}.{recorded}.") if key.endswith(".out")),
            key=lambda key: [int(part) for part in key.split(".")[:2]],
        )
        assert len(wanted) == len(self.calls[name])
        for key, (x, made) in zip(wanted, self.calls[name], strict=True):
            of = f"{self.run}.{recorded}.{key.removesuffix('.out')}"
            assert_near(x, self.golden[f"{of}.x"], TOLERANCE, f"what call {of} is given")
            assert_near(made, self.golden[f"{of}.out"], TOLERANCE, f"call {of}")


def changes(before: set[str], after: set[str]) -> list[ControlInput]:
    edges = [KeyEdge(key, down=False) for key in sorted(before - after)]
    edges += [KeyEdge(key, down=True) for key in sorted(after - before)]
    return [KeysInput(ControlId("k"), KEYS, tuple(edges))] if edges else []


def atari_game(golden: Golden, run: str) -> GameConfig:
    _, height, width = golden["in.start"].shape
    network = network_of(ATARI.world, golden.meta["agent"]["denoiser"])
    sampler = sampler_of(golden.meta["runs"][run])
    if run == "euler":
        assert sampler == ATARI.sampler, "the recording is of what is served"
    return replace(ATARI, height=height, width=width, world=network, sampler=sampler)


def csgo_game(golden: Golden, run: str) -> GameConfig:
    _, _, height, width = golden["spawn.low_res"].shape
    agent, public = golden.meta["agent"], golden.meta["runs"][run]
    assert CSGO.upsampler is not None
    game = replace(
        CSGO,
        height=height,
        width=width,
        factor=golden.meta["denoiser"]["upsampling_factor"],
        world=network_of(CSGO.world, agent["denoiser"]),
        upsampler=network_of(CSGO.upsampler, agent["upsampler"]),
    )
    first, second = sampler_of(public["next_obs"]), sampler_of(public["upsampling"])
    if run == "fast":
        assert (first, second) == (CSGO.sampler, CSGO.upsampling)
        return game
    if run == "fine":
        assert (first, second) == (CSGO.fine, CSGO.fine_upsampling)
        return game
    return replace(game, sampler=first, upsampling=second)


def write_agent(golden: Golden, path: Path) -> None:
    held = {
        f"{part}.{name}": value
        for part in golden.meta["agent"]
        for name, value in golden.below(f"{part}.").items()
    }
    torch.save(held, path)


def atari_rig(golden: Golden, run: str, folder: Path, played: Played) -> Rig:
    write_agent(golden, folder / "Pong.pt")
    Image.fromarray(golden["in.start"].permute(1, 2, 0).numpy()).save(folder / "start.png")
    family = Diamond(atari=atari_game(golden, run), draw=played.draw)
    return Rig(family, LoadOptions(device="cpu", checkpoint=str(folder), sessions=1))


def csgo_rig(golden: Golden, run: str, folder: Path, played: Played) -> Rig:
    (folder / "model").mkdir()
    write_agent(golden, folder / "model" / "csgo.pt")
    (folder / "spawn" / "0").mkdir(parents=True)
    for name, value in golden.below("spawn.").items():
        np.save(folder / "spawn" / "0" / f"{name}.npy", value.numpy())
    family = Diamond(csgo=csgo_game(golden, run), draw=played.draw)
    return Rig(family, LoadOptions(device="cpu", checkpoint=str(folder), sessions=1))


def csgo_inputs(golden: Golden) -> Iterator[list[ControlInput]]:
    before = set[str]()
    for action in golden.meta["actions"]:
        after = csgo_keys(action)
        moves = [
            AxisInput(ControlId(axis), axis, float(action[axis]))
            for axis in ("mouse_x", "mouse_y")
            if action[axis]
        ]
        yield [*changes(before, after), *moves]
        before = after


def csgo_keys(action: dict[str, Any]) -> set[str]:
    clicks = {name for name in ("left_click", "right_click") if action[name]}
    return clicks | {NAMES.get(key, key) for key in action["keys"]}


@pytest.fixture(params=["euler", "heun", "churn"])
def atari(request: pytest.FixtureRequest, tmp_path: Path) -> Played:
    golden, run = Golden.read("diamond/atari"), request.param
    played = Played(golden, run)
    before = (set[str](), *PONG_KEYS)
    presses = [changes(*pair) for pair in zip(before, PONG_KEYS, strict=False)]
    rig = atari_rig(golden, run, tmp_path, played)
    played.play(rig, presses[: golden.meta["runs"][run]["frames"]], None)
    return played


@pytest.fixture(params=["fast", "fine", "heun"])
def csgo(request: pytest.FixtureRequest, tmp_path: Path) -> Played:
    golden, run = Golden.read("diamond/csgo"), request.param
    played = Played(golden, run)
    presses = list(csgo_inputs(golden))[: golden.meta["runs"][run]["frames"]]
    rig = csgo_rig(golden, run, tmp_path, played)
    played.play(rig, presses, 1.0 if run == "fine" else 0.0)
    return played


class TestAtari:
    """A session of Pong, steered by keys."""

    def test_every_picture_is_the_public_one(self, atari: Played) -> None:
        for frame, made in enumerate(atari.shown):
            wanted = atari.golden[f"{atari.run}.out.{frame}"]
            assert_near(made, wanted, TOLERANCE, f"picture {frame} of {atari.run}")

    def test_every_call_of_the_network_is_the_public_one(self, atari: Played) -> None:
        atari.assert_calls("world", "call")


class TestCounterStrike:
    """A session that begins with a public spawn, steered by keys and mouse."""

    def test_every_picture_is_the_public_one_small_and_large(self, csgo: Played) -> None:
        for frame, (small, shown) in enumerate(zip(csgo.small, csgo.shown, strict=True)):
            for size, made in (("small", small), ("out", shown)):
                wanted = csgo.golden[f"{csgo.run}.{size}.{frame}"]
                assert_near(made, wanted, TOLERANCE, f"picture {frame} ({size}) of {csgo.run}")

    def test_every_call_of_both_networks_is_the_public_one(self, csgo: Played) -> None:
        csgo.assert_calls("world", "call")
        csgo.assert_calls("upsampler", "large_call")


def test_the_first_picture_is_the_newest_of_the_spawn(tmp_path: Path) -> None:
    golden = Golden.read("diamond/csgo")
    rig = csgo_rig(golden, "fast", tmp_path, Played(golden, "fast"))
    state = rig.kernel.init_state(LoopRequest("s1", 0), rig.instance)
    assert_near(state.shown_CHW, golden["reset.out"], TOLERANCE, "the start")


@pytest.mark.parametrize(("name", "config"), [("atari", ATARI.world), ("csgo", CSGO.world)])
def test_the_factors_of_a_level_are_the_public_ones(name: str, config: UNetConfig) -> None:
    golden = Golden.read(f"diamond/{name}")
    for index, sigma in enumerate(golden["conditioners.sigma"].tolist()):
        made = Conditioners.at(sigma, config)
        for factor in ("c_in", "c_out", "c_skip", "c_noise"):
            wanted = golden[f"conditioners.{factor}"][index].item()
            assert getattr(made, factor) == pytest.approx(wanted, abs=1e-6), (factor, sigma)


@pytest.mark.parametrize("name", ["atari", "csgo"])
def test_a_sampler_goes_through_the_public_levels(name: str) -> None:
    for run in Golden.read(f"diamond/{name}").meta["runs"].values():
        pairs = [(run.get("next_obs", run), run["sigmas"])]
        if "upsampling" in run:
            pairs.append((run["upsampling"], run["upsampling_sigmas"]))
        for public, levels in pairs:
            assert sampler_of(public).sigmas() == pytest.approx(levels, rel=1e-7)


class TestNetwork:
    """The networks alone, two rows at once."""

    def loaded(self, name: str, folder: Path) -> tuple[Golden, Rig]:
        golden = Golden.read(f"diamond/{name}")
        make, run = (atari_rig, "euler") if name == "atari" else (csgo_rig, "fast")
        return golden, make(golden, run, folder, Played(golden, run))

    @pytest.mark.parametrize(
        ("name", "component", "recorded"),
        [
            ("atari", "world", "inner"),
            ("csgo", "world", "inner"),
            ("csgo", "upsampler", "upsampler_inner"),
        ],
    )
    def test_a_forward_pass_is_the_public_one(
        self, name: str, component: str, recorded: str, tmp_path: Path
    ) -> None:
        golden, rig = self.loaded(name, tmp_path)
        network = rig.instance.components[component]
        assert isinstance(network, Denoiser)
        given = golden.below(f"{recorded}.")
        with torch.no_grad():
            made = network.inner_model(
                given["x"],
                given["c_noise"],
                given["past"],
                given.get("action"),
                given.get("c_noise_cond"),
            )
        assert_near(made, given["out"], TOLERANCE, f"{component} of {name}")


def test_rows_of_keys_and_mouse_are_the_public_ones() -> None:
    golden = Golden.read("diamond/csgo")
    for number, action in enumerate(golden.meta["rows"]):
        clicks = [name for name in ("left_click", "right_click") if action[name]]
        held = tuple(NAMES.get(key, key) for key in action["keys"])
        axes = {axis: float(action[axis]) for axis in ("mouse_x", "mouse_y")}
        controls = Controls(keys={KEYS: KeyInput(held=(*held, *clicks))}, axes=axes)
        wanted = golden["rows.out"][number].tolist()
        assert action_of(controls, CSGO).tolist() == wanted, action
