"""DIAMOND against a plain reading of its equations in float64, call by call and frame by frame."""

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from loop_rig import Rig
from PIL import Image
from tiny_diamond import TinyDiamond, tiny_options
from torch import Tensor
from torch.nn import functional

from reverie.engine.inputs import AxisInput, ControlId, KeysInput, ParameterInput
from reverie.models.controls import Controls, KeyEdge, KeyInput
from reverie.models.diamond.actions import KEYS, QUALITY, action_of, idle_action
from reverie.models.diamond.config import (
    ATARI,
    CSGO,
    SamplerConfig,
    UNetConfig,
)
from reverie.models.diamond.denoiser import Denoiser
from reverie.models.diamond.kernel import DiamondParts
from reverie.models.diamond.sampler import Drawing, advanced, calls_left
from reverie.models.diamond.spec import TINY, Diamond, random_parts
from reverie.models.diamond.state import DiamondState
from reverie.models.errors import CheckpointError
from reverie.models.instance import LoadOptions
from reverie.models.loop import LoopRequest
from reverie.models.seeds import normal


@pytest.fixture(scope="module")
def parts() -> DiamondParts:
    return random_parts(torch.device("cpu"))


# --- the equations ---


class PlainReading:
    """A denoiser written down as the equations are, in float64, before rounding."""

    def __init__(self, denoiser: Denoiser) -> None:
        self.weights = {name: value.double() for name, value in denoiser.state_dict().items()}
        self.config = denoiser.config

    def __call__(
        self, x: Tensor, sigma: float, past: Tensor, action: Tensor | None, past_sigma: float
    ) -> Tensor:
        config, data = self.config, self.config.sigma_data
        total = math.sqrt(sigma**2 + config.sigma_offset**2)
        c_in = 1 / math.sqrt(total**2 + data**2)
        c_skip = data**2 / (total**2 + data**2)
        condition = self.fourier("noise_emb", math.log(total) / 4)
        if config.noisy_past:
            told = math.log(past_sigma) / 4 if past_sigma else 0.0
            condition = condition + self.fourier("noise_cond_emb", told)
        if action is not None:
            table = self.weights["inner_model.act_emb.0.weight"]
            rows = action.double() @ table if config.multi_hot else table[action]
            condition = condition + rows.flatten()
        condition = self.linear("cond_proj.0", condition)
        condition = self.linear("cond_proj.2", functional.silu(condition))
        inside = torch.cat((past.double().flatten(0, 1) / data, x.double() * c_in))
        y = self.unet(self.convolved("conv_in", inside[None]), condition)
        y = self.normed(y, "norm_out.norm")
        y = self.convolved("conv_out", functional.silu(y))[0]
        return c_skip * x.double() + total * math.sqrt(c_skip) * y

    def fourier(self, name: str, number: float) -> Tensor:
        angles = 2 * math.pi * number * self.weights[f"inner_model.{name}.weight"][0]
        return torch.cat([angles.cos(), angles.sin()])

    def linear(self, name: str, x: Tensor) -> Tensor:
        weight, bias = (self.weights[f"inner_model.{name}.{part}"] for part in ("weight", "bias"))
        made: Tensor = x @ weight.T + bias
        return made

    def convolved(self, name: str, x: Tensor, stride: int = 1) -> Tensor:
        weight = self.weights[f"inner_model.{name}.weight"]
        bias = self.weights[f"inner_model.{name}.bias"]
        return functional.conv2d(x, weight, bias, stride, padding=weight.shape[-1] // 2)

    def normed(self, x: Tensor, name: str | None = None) -> Tensor:
        groups = max(1, x.shape[1] // 32)
        cut = x.reshape(groups, -1)
        mean, spread = cut.mean(1, keepdim=True), cut.var(1, keepdim=True, unbiased=False)
        normal_x: Tensor = ((cut - mean) / (spread + 1e-5).sqrt()).view(x.shape)
        if name is None:
            return normal_x
        weight, bias = (
            self.weights[f"inner_model.{name}.{part}"][:, None, None] for part in ("weight", "bias")
        )
        made: Tensor = normal_x * weight + bias
        return made

    def ada(self, x: Tensor, name: str, condition: Tensor) -> Tensor:
        scale, shift = self.linear(f"{name}.linear", condition)[:, None, None].chunk(2)
        return self.normed(x) * (1 + scale) + shift

    def residual(self, x: Tensor, name: str, condition: Tensor) -> Tensor:
        has_way = f"inner_model.{name}.proj.weight" in self.weights
        way = self.convolved(f"{name}.proj", x) if has_way else x
        x = self.convolved(
            f"{name}.conv1", functional.silu(self.ada(x, f"{name}.norm1", condition))
        )
        x = self.convolved(
            f"{name}.conv2", functional.silu(self.ada(x, f"{name}.norm2", condition))
        )
        return self.attended(x + way, f"{name}.attn")

    def attended(self, x: Tensor, name: str) -> Tensor:
        if f"inner_model.{name}.qkv_proj.weight" not in self.weights:
            return x
        _, C, H, W = x.shape
        q, k, v = self.convolved(f"{name}.qkv_proj", self.normed(x, f"{name}.norm.norm"))[0].chunk(
            3
        )
        out = torch.zeros_like(q)
        for head in range(max(1, C // 8)):
            rows = slice(8 * head, 8 * head + 8) if C >= 8 else slice(0, C)
            a, b, c = (part[rows].flatten(1) for part in (q, k, v))
            weights = (a.T @ b / math.sqrt(a.shape[0])).softmax(1)
            out[rows] = (c @ weights.T).view(-1, H, W)
        return x + self.convolved(f"{name}.out_proj", out[None])

    def unet(self, x: Tensor, condition: Tensor) -> Tensor:
        config, (H, W) = self.config, x.shape[-2:]
        levels = len(config.channels)
        step = 2 ** (levels - 1)
        x = functional.pad(x, (0, -W % step, 0, -H % step))
        passed = []
        for level in range(levels):
            if level:
                x = self.convolved(f"unet.downsamples.{level}.conv", x, stride=2)
            seen = [x]
            for block in range(config.depths[level]):
                x = self.residual(x, f"unet.d_blocks.{level}.resblocks.{block}", condition)
                seen.append(x)
            passed.append(seen)
        for block in range(2):
            x = self.residual(x, f"unet.mid_blocks.resblocks.{block}", condition)
        for level in range(levels):
            if level:
                x = x.repeat_interleave(2, -1).repeat_interleave(2, -2)
                x = self.convolved(f"unet.upsamples.{level}.conv", x)
            beside = passed.pop()
            for block in range(config.depths[levels - 1 - level] + 1):
                name = f"unet.u_blocks.{level}.resblocks.{block}"
                x = self.residual(torch.cat((x, beside.pop()), dim=1), name, condition)
        return x[..., :H, :W]


def rounded_down(picture: Tensor) -> Tensor:
    return ((picture.clamp(-1, 1) + 1) / 2 * 255).floor() / 255 * 2 - 1


TINY_ATARI = UNetConfig(
    channels=(32, 64), depths=(2, 1), attention=(False, True), condition=16, steps=4, actions=18
)


class TestDenoiser:
    """One call."""

    @pytest.mark.parametrize("config", [TINY_ATARI, TINY.world], ids=["atari", "csgo"])
    @pytest.mark.parametrize("sigma", [5.0, 0.28308, 0.002])
    def test_it_is_its_equations(self, config: UNetConfig, sigma: float) -> None:
        random = torch.Generator().manual_seed(2)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(2)
            denoiser = Denoiser(config)
        x = torch.randn(3, 9, 14, generator=random)
        past = torch.rand(config.steps, 3, 9, 14, generator=random) * 2 - 1
        if config.multi_hot:
            action = torch.randint(0, 2, (config.steps, config.actions), generator=random).float()
        else:
            action = torch.randint(0, config.actions, (config.steps,), generator=random)
        past_sigma = 0.005 if config.noisy_past else 0.0
        with torch.no_grad():
            made = denoiser(x[None], sigma, past[None], action[None], past_sigma)[0]
        wanted = PlainReading(denoiser)(x, sigma, past, action, past_sigma)
        off = (made.double() - rounded_down(wanted)).abs() * 255 / 2
        assert off.max() <= 1.01, "more than a step of rounding"
        assert (off > 0.5).double().mean() < 0.02, "only what lies on an edge may round otherwise"

    def test_its_tensors_have_the_public_names(self) -> None:
        with torch.device("meta"):
            names = set(Denoiser(ATARI.world).state_dict())
        for name in (
            "inner_model.noise_emb.weight",
            "inner_model.act_emb.0.weight",
            "inner_model.cond_proj.2.bias",
            "inner_model.conv_in.weight",
            "inner_model.unet.d_blocks.3.resblocks.1.norm2.linear.weight",
            "inner_model.unet.u_blocks.0.resblocks.2.proj.weight",
            "inner_model.unet.mid_blocks.resblocks.1.attn.qkv_proj.weight",
            "inner_model.unet.downsamples.3.conv.weight",
            "inner_model.unet.upsamples.1.conv.bias",
            "inner_model.norm_out.norm.weight",
            "inner_model.conv_out.bias",
        ):
            assert name in names
        assert "inner_model.noise_cond_emb.weight" not in names

    def test_the_large_game_sees_noise_of_the_past_and_a_small_picture(self) -> None:
        assert CSGO.upsampler is not None
        with torch.device("meta"):
            world, upsampler = Denoiser(CSGO.world), Denoiser(CSGO.upsampler)
        assert world.state_dict()["inner_model.act_emb.0.weight"].shape == (51, 512)
        assert world.inner_model.conv_in.in_channels == 15
        assert upsampler.inner_model.conv_in.in_channels == 9
        assert "inner_model.noise_cond_emb.weight" in upsampler.state_dict()

    def test_the_upsampler_never_goes_below_the_level_of_one(self) -> None:
        assert CSGO.fine_upsampling is not None
        assert CSGO.fine_upsampling.sigmas()[-2:] == pytest.approx((1, 0))


# --- the sampler ---


def shrink(x: Tensor, sigma: float) -> Tensor:
    """A denoiser whose answers can be computed by hand."""
    return x / (1 + sigma)


def drawn(config: SamplerConfig, start: Tensor) -> tuple[Tensor, int]:
    drawing, calls = Drawing(start), 0
    while not drawing.done(config):
        assert calls_left(drawing, config) > 0
        drawing = advanced(drawing, config, shrink, lambda step: torch.full((2,), float(step + 1)))
        calls += 1
    assert calls_left(drawing, config) <= 0
    return drawing.x_CHW, calls


class TestSampler:
    """From noise to a picture."""

    def test_levels_are_those_of_the_public_sampler(self) -> None:
        assert SamplerConfig().sigmas() == pytest.approx((5, 0.28308, 0.002, 0), abs=1e-5)

    @pytest.mark.parametrize("heun", [False, True])
    @pytest.mark.parametrize(
        "churn", [SamplerConfig(steps=4), CSGO.upsampling, CSGO.fine_upsampling]
    )
    def test_steps_are_their_equations(self, heun: bool, churn: SamplerConfig) -> None:
        config = replace(churn, heun=heun)
        start = torch.tensor([1.0, -2.0], dtype=torch.float64)
        made, calls = drawn(config, start)
        x, sigmas = start, config.sigmas()
        for step, (sigma, after) in enumerate(pairwise(sigmas)):
            gamma = 0.0
            if config.churn_low <= sigma <= config.churn_high:
                gamma = min(config.churn / config.steps, math.sqrt(2) - 1)
            hat = sigma * (1 + gamma)
            x = x + (step + 1) * config.churn_noise * math.sqrt(max(0.0, hat**2 - sigma**2))
            slope = (x - x / (1 + sigma)) / hat  # told sigma, not sigma hat
            euler = x + slope * (after - hat)
            if heun and after:
                second = (euler - euler / (1 + after)) / after
                euler = x + (slope + second) / 2 * (after - hat)
            x = euler
        torch.testing.assert_close(made, x)
        assert calls == (2 * config.steps - 1 if heun else config.steps)


# --- the loop ---


class TestLoop:
    """Pictures through the driver."""

    @pytest.mark.parametrize("quality", [0, 1])
    def test_pictures_are_those_of_the_public_loop(
        self, parts: DiamondParts, quality: float
    ) -> None:
        rig = Rig(TinyDiamond(), tiny_options(sessions=1))
        rig.open(LoopRequest("s1", 5, parameters={QUALITY: quality}))
        rig.drivers["s1"].push(
            [
                KeysInput(ControlId("k"), KEYS, (KeyEdge("w", down=True),)),
                AxisInput(ControlId("a"), "mouse_x", 25.0),
            ]
        )
        made = [out.frames[0] for out in rig.run_chunks("s1", 4)]
        game = parts.game
        if quality:
            assert game.fine is not None
            game = replace(game, sampler=game.fine, upsampling=game.fine_upsampling)
        expected = public_loop(replace(parts, game=game), 5, 4)
        for number, (one, other) in enumerate(zip(made, expected, strict=True)):
            difference = (torch.from_numpy(one).int() - other.int()).abs()
            assert difference.max() <= 2, f"picture {number} is off by {difference.max()}"

    def test_another_quality_counts_from_the_next_picture_on(self) -> None:
        rig = Rig(TinyDiamond(), tiny_options(sessions=1))
        rig.open(LoopRequest("s1", 5, parameters={QUALITY: 0.0}))
        rig.run_chunks("s1", 2)
        before = newest(rig)
        rig.drivers["s1"].push([ParameterInput(ControlId("q"), QUALITY, 1.0)])
        rig.run_chunks("s1", 1)
        assert (before.fine, newest(rig).fine) == (False, True)

    def test_of_two_keys_that_exclude_each_other_the_one_held_longer_counts(self) -> None:
        tapped = (KeyEdge("2", down=True), KeyEdge("2", down=False))
        keys = {KEYS: KeyInput(tapped, ("s", "w", "a", "3"))}
        row = action_of(Controls(keys=keys), CSGO)[: len(CSGO.keys)]
        assert [key for key, on in zip(CSGO.keys, row, strict=True) if on] == ["a", "s", "3"]

    def test_a_row_has_one_place_of_the_mouse_on_each_axis(self) -> None:
        tapped = (KeyEdge("left_click", down=True), KeyEdge("left_click", down=False))
        keys = {KEYS: KeyInput(tapped, ("w",))}
        row = action_of(Controls(keys=keys, axes={"mouse_x": 26.0, "mouse_y": -500.0}), CSGO)
        assert len(row) == 51
        assert row.nonzero().flatten().tolist() == [0, 11, 13 + 11 + 5, 13 + 23]

    def test_a_game_of_single_actions_takes_the_tap_before_what_is_held(self) -> None:
        tapped = (KeyEdge("fire", down=True), KeyEdge("fire", down=False))
        keys = {KEYS: KeyInput(tapped, ("left",))}
        assert int(action_of(Controls(keys=keys), ATARI)) == 1
        assert int(idle_action(ATARI)) == 0


def newest(rig: Rig) -> DiamondState:
    state = rig.drivers["s1"]._parts.states.history.newest.state
    assert isinstance(state, DiamondState)
    return state


def public_loop(parts: DiamondParts, seed: int, count: int) -> list[Tensor]:
    """Make pictures as the public loop does, buffers that roll and all."""
    game, config = parts.game, parts.game.upsampling
    assert config is not None
    assert parts.upsampler is not None
    start = parts.starts[seed % len(parts.starts)]
    obs, act = [start] * game.world.steps, [idle_action(game)] * game.world.steps
    large = functional.interpolate(start[None], scale_factor=game.factor, mode="bicubic")[0]
    shown = [large.clamp(-1, 1)]
    with torch.no_grad():
        for frame in range(count - 1):
            moved = {"mouse_x": 25.0} if frame == 0 else {}
            act[-1] = action_of(Controls(keys={KEYS: KeyInput(held=("w",))}, axes=moved), game)
            past = torch.stack(obs)
            x = normal(seed, "picture 0", frame, tuple(start.shape))
            for step, (sigma, after) in enumerate(pairwise(game.sampler.sigmas())):
                past = past + 0.005 * normal(seed, f"past {step}", frame, (1, *past.shape))[0]
                clean = parts.world(x[None], sigma, past[None], torch.stack(act)[None], 0.005)[0]
                slope = (x - clean) / sigma
                guess = x + slope * (after - sigma)
                if after and game.sampler.heun:
                    clean = parts.world(
                        guess[None], after, past[None], torch.stack(act)[None], 0.005
                    )
                    guess = x + (slope + (guess - clean[0]) / after) / 2 * (after - sigma)
                x = guess
            obs, act = [*obs[1:], x], [*act[1:], act[0]]
            small = functional.interpolate(x[None], scale_factor=game.factor, mode="bicubic")[0]
            seen, y = (
                torch.stack((shown[-1], small)),
                normal(seed, "large 0", frame + 1, tuple(small.shape)),
            )
            sigmas = config.sigmas()
            for step, (sigma, after) in enumerate(pairwise(sigmas)):
                hat = sigma * (1 + min(config.churn / config.steps, math.sqrt(2) - 1))
                added = normal(seed, f"large churn {step}", frame + 1, tuple(y.shape))
                y = y + config.churn_noise * added * math.sqrt(hat**2 - sigma**2)
                clean = parts.upsampler(y[None], sigma, seen[None], None)[0]
                y = y + (y - clean) / hat * (after - hat)
            shown.append(y)
    return [
        ((y / 2 + 0.5).clamp(0, 1).permute(1, 2, 0) * 255).round().to(torch.uint8) for y in shown
    ]


class TestLoading:
    """A public agent."""

    def write(self, folder: Path, actions: int = 6) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(1)
            world = Denoiser(replace(ATARI.world, actions=actions))
        held = {f"denoiser.{name}": value for name, value in world.state_dict().items()}
        torch.save({**held, "actor_critic.lstm.bias": torch.zeros(3)}, folder / "Pong.pt")
        Image.new("RGB", (160, 210), (0, 90, 0)).save(folder / "start.png")

    def test_a_folder_becomes_a_game_with_as_many_actions_as_it_learnt(
        self, tmp_path: Path
    ) -> None:
        self.write(tmp_path)
        instance = Diamond().load(LoadOptions(device="cpu", checkpoint=str(tmp_path)))
        assert instance.spec.loops[0].controls[0].keys == ATARI.keys[:5]
        assert Diamond().check(str(tmp_path)).fits

    def test_without_a_start_picture_it_is_refused(self, tmp_path: Path) -> None:
        self.write(tmp_path)
        (tmp_path / "start.png").unlink()
        report = Diamond().check(str(tmp_path))
        assert (report.fits, report.lacking) == (False, ("a start picture (*.png)",))
        with pytest.raises(CheckpointError, match="holds no start picture"):
            Diamond().load(LoadOptions(device="cpu", checkpoint=str(tmp_path)))

    def test_an_agent_of_another_kind_is_refused(self, tmp_path: Path) -> None:
        torch.save({"denoiser.conv": torch.zeros(1)}, tmp_path / "agent.pt")
        with pytest.raises(CheckpointError, match="is no DIAMOND agent"):
            Diamond().check(str(tmp_path))
