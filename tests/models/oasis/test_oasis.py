"""Oasis against a plain reading of its equations in float64, call by call and frame by frame."""

import math
import re
from collections.abc import Callable

import pytest
import torch
from loop_rig import Rig
from tiny_oasis import TinyOasis, tiny_options
from torch import Tensor

from reverie.engine.inputs import AxisInput, ControlId, KeysInput
from reverie.models.controls import Controls, KeyEdge, KeyInput
from reverie.models.loop import LoopRequest
from reverie.models.oasis.config import ACTIONS, DitConfig, VaeConfig
from reverie.models.oasis.ddim import CONTEXT_LEVEL, Ddim
from reverie.models.oasis.kernel import CONTROL, OasisKernel, OasisParts, action_row
from reverie.models.oasis.spec import TINY_DIT, random_parts
from reverie.models.oasis.transformer import OasisTransformer
from reverie.models.oasis.vae import OasisVae
from reverie.models.seeds import normal

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def parts() -> OasisParts:
    return random_parts(CPU)


def window(frames: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return latents, levels and actions of a window."""
    random = torch.Generator().manual_seed(4)
    shape = (1, frames, TINY_DIT.channels, TINY_DIT.height, TINY_DIT.width)
    levels = torch.full((1, frames), CONTEXT_LEVEL)
    levels[0, -1] = 700
    actions = torch.rand(1, frames, len(ACTIONS), generator=random)
    return torch.randn(shape, generator=random), levels, actions


# --- the equations, one token at a time ---


def spun(vector: Tensor, angles: Tensor) -> Tensor:
    """Turn adjacent pairs of a head's first channels; one angle a pair."""
    out = vector.clone()
    for pair, angle in enumerate(angles.tolist()):
        a, b = vector[2 * pair], vector[2 * pair + 1]
        out[2 * pair] = a * math.cos(angle) - b * math.sin(angle)
        out[2 * pair + 1] = a * math.sin(angle) + b * math.cos(angle)
    return out


def attended(q: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
    scores = torch.stack([q @ k for k in keys]) / math.sqrt(len(q))
    return (scores.softmax(0)[:, None] * torch.stack(values)).sum(0)


class PlainReading:
    """The transformer written down as the equations are, in float64."""

    def __init__(self, transformer: OasisTransformer) -> None:
        self.weights = {name: value.double() for name, value in transformer.state_dict().items()}
        self.config = transformer.config

    def linear(self, name: str, x: Tensor) -> Tensor:
        bias = self.weights.get(f"{name}.bias")
        made: Tensor = x @ self.weights[f"{name}.weight"].T + (0 if bias is None else bias)
        return made

    def __call__(self, x_FZhw: Tensor, levels: Tensor, actions: Tensor) -> Tensor:
        config, frames = self.config, len(x_FZhw)
        proj = self.weights["x_embedder.proj.weight"]
        tokens = torch.zeros(frames, config.rows * config.columns, config.hidden).double()
        p = config.patch
        for f in range(frames):
            for row in range(config.rows):
                for column in range(config.columns):
                    patch = x_FZhw[f, :, row * p : row * p + p, column * p : column * p + p]
                    tokens[f, row * config.columns + column] = (proj * patch.double()).sum(
                        (1, 2, 3)
                    ) + self.weights["x_embedder.proj.bias"]
        condition = torch.stack(
            [
                self.level(float(level)) + self.linear("external_cond", action.double())
                for level, action in zip(levels, actions, strict=True)
            ]
        )
        for block in range(config.depth):
            tokens = self.half(f"blocks.{block}.s", tokens, condition, self.spatial)
            tokens = self.half(f"blocks.{block}.t", tokens, condition, self.temporal)
        silu = torch.nn.functional.silu(condition)
        shift, scale = self.linear("final_layer.adaLN_modulation.1", silu).chunk(2, dim=-1)
        out = self.linear(
            "final_layer.linear", normed(tokens) * (1 + scale[:, None]) + shift[:, None]
        )
        made = torch.zeros(x_FZhw.shape).double()
        for f in range(frames):
            for row in range(config.rows):
                for column in range(config.columns):
                    patch = out[f, row * config.columns + column].view(p, p, config.channels)
                    made[f, :, row * p : row * p + p, column * p : column * p + p] = patch.permute(
                        2, 0, 1
                    )
        return made

    def level(self, level: float) -> Tensor:
        angles = torch.tensor([level * 10000 ** (-i / 128) for i in range(128)]).double()
        hidden = self.linear("t_embedder.mlp.0", torch.cat([angles.cos(), angles.sin()]))
        return self.linear("t_embedder.mlp.2", torch.nn.functional.silu(hidden))

    def half(
        self, name: str, tokens: Tensor, condition: Tensor, attend: Callable[[str, Tensor], Tensor]
    ) -> Tensor:
        rows = self.linear(f"{name}_adaLN_modulation.1", torch.nn.functional.silu(condition))
        shift, scale, gate, m_shift, m_scale, m_gate = rows[:, None].chunk(6, dim=-1)
        tokens = tokens + gate * attend(f"{name}_attn", normed(tokens) * (1 + scale) + shift)
        hidden = self.linear(f"{name}_mlp.fc1", normed(tokens) * (1 + m_scale) + m_shift)
        gelu = torch.nn.functional.gelu(hidden, approximate="tanh")
        return tokens + m_gate * self.linear(f"{name}_mlp.fc2", gelu)

    def heads(self, name: str, x: Tensor) -> list[list[Tensor]]:
        """Return q, k, v, each a list of heads [frames, tokens, d]."""
        parts = self.linear(f"{name}.to_qkv", x).chunk(3, dim=-1)
        return [list(part.chunk(self.config.heads, dim=-1)) for part in parts]

    def spatial(self, name: str, x: Tensor) -> Tensor:
        config, out = self.config, torch.zeros_like(x)
        size = config.head_size
        for head, (q, k, v) in enumerate(zip(*self.heads(name, x), strict=True)):
            for f in range(len(x)):
                places = [self.place(n) for n in range(x.shape[1])]
                keys = [spun(k[f, n], place) for n, place in enumerate(places)]
                for n, place in enumerate(places):
                    mixed = attended(spun(q[f, n], place), keys, list(v[f]))
                    out[f, n, head * size : (head + 1) * size] = mixed
        return self.linear(f"{name}.to_out", out)

    def place(self, token: int) -> Tensor:
        row, column = divmod(token, self.config.columns)
        count = self.config.head_size // 4
        steps = [1 + 127 * i / max(1, count - 1) for i in range(count)]
        down = -1 + 2 * row / max(1, self.config.rows - 1)
        across = -1 + 2 * column / max(1, self.config.columns - 1)
        return torch.tensor([place * step * math.pi for place in (down, across) for step in steps])

    def temporal(self, name: str, x: Tensor) -> Tensor:
        out, size = torch.zeros_like(x), self.config.head_size
        turns = [
            torch.tensor([f * 10000 ** (-2 * i / size) for i in range(size // 2)])
            for f in range(len(x))
        ]
        for head, (q, k, v) in enumerate(zip(*self.heads(name, x), strict=True)):
            for n in range(x.shape[1]):
                for f in range(len(x)):
                    keys = [spun(k[g, n], turns[g]) for g in range(f + 1)]
                    values = [v[g, n] for g in range(f + 1)]
                    mixed = attended(spun(q[f, n], turns[f]), keys, values)
                    out[f, n, head * size : (head + 1) * size] = mixed
        return self.linear(f"{name}.to_out", out)


def normed(x: Tensor) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / ((x - mean).square().mean(-1, keepdim=True) + 1e-6).sqrt()


class TestTransformer:
    """One call."""

    def test_it_is_its_equations(self, parts: OasisParts) -> None:
        x, levels, actions = window(3)
        with torch.no_grad():
            made = parts.transformer(x, levels, actions).v_BFZhw[0]
        wanted = PlainReading(parts.transformer)(x[0], levels[0], actions[0])
        torch.testing.assert_close(made.double(), wanted, atol=2e-4, rtol=1e-4)
        assert wanted.abs().mean() > 0.01, "zeros would agree with anything"

    def test_a_frame_beside_a_cached_past_is_the_frame_of_the_whole_window(
        self, parts: OasisParts
    ) -> None:
        x, levels, actions = window(4)
        with torch.no_grad():
            whole = parts.transformer(x, levels, actions).v_BFZhw[0, -1]
            past = parts.transformer(x[:, :-1], levels[:, :-1], actions[:, :-1]).cached_BF2LNAd
            alone = parts.transformer(x[:, -1:], levels[:, -1:], actions[:, -1:], past)
        torch.testing.assert_close(alone.v_BFZhw[0, -1], whole, atol=1e-5, rtol=1e-5)

    def test_its_tensors_have_the_public_names(self) -> None:
        with torch.device("meta"):
            names = set(OasisTransformer(DitConfig()).state_dict())
        halves = "|".join(
            ("attn.to_qkv", "attn.to_out", "mlp.fc1", "mlp.fc2", r"adaLN_modulation\.1")
        )
        public = re.compile(
            rf"(x_embedder\.proj|t_embedder\.mlp\.[02]|external_cond|blocks\.\d+\.[st]_({halves})"
            r"|final_layer\.(linear|adaLN_modulation\.1))\.(weight|bias)"
        )
        assert all(public.fullmatch(name) for name in names)
        assert not any(name.endswith("to_qkv.bias") for name in names)
        assert len(names) == 2 + 4 + 2 + 16 * 2 * 9 + 4

    def test_the_public_sizes_are_those_of_half_a_billion(self) -> None:
        with torch.device("meta"):
            count = sum(p.numel() for p in OasisTransformer(DitConfig()).parameters())
            codec = OasisVae(VaeConfig())
        assert 5.5e8 < count < 6.5e8
        assert len(codec.decoder) == 12


class TestDdim:
    """The schedule."""

    def test_a_step_is_its_equations(self) -> None:
        ddim = Ddim.of(10)
        assert ddim.levels == (999, 899, 799, 699, 599, 499, 399, 299, 199, 99)
        random = torch.Generator().manual_seed(1)
        x, v = torch.randn(5, generator=random), torch.randn(5, generator=random)
        a, b = ddim.alphas[499].double(), ddim.alphas[399].double()
        clean = a.sqrt() * x.double() - (1 - a).sqrt() * v.double()
        noise = ((1 / a).sqrt() * x.double() - clean) / (1 / a - 1).sqrt()
        wanted = b.sqrt() * clean + (1 - b).sqrt() * noise
        torch.testing.assert_close(ddim.step(x, v, 5).double(), wanted, atol=1e-5, rtol=1e-5)

    def test_the_last_step_ends_clean(self) -> None:
        ddim = Ddim.of(10)
        x = torch.randn(5, generator=torch.Generator().manual_seed(1))
        a = ddim.alphas[99]
        wanted = a.sqrt() * x - (1 - a).sqrt() * (2 * x)
        torch.testing.assert_close(ddim.step(x, 2 * x, 9), wanted)

    def test_levels_fall_along_a_sigmoid(self) -> None:
        alphas = Ddim.of(10).alphas
        assert (alphas.diff() < 0).all()
        assert alphas[0] > 0.999
        assert alphas[-1] < 1e-3


class TestLoop:
    """Frames through the driver."""

    def test_frames_are_those_of_the_public_loop_also_when_the_window_slides(
        self, parts: OasisParts
    ) -> None:
        rig = Rig(TinyOasis(), tiny_options(sessions=1))
        kernel = rig.kernel
        assert isinstance(kernel, OasisKernel)
        rig.open(LoopRequest("s1", 5))
        rig.drivers["s1"].push(
            [
                KeysInput(ControlId("k"), CONTROL, (KeyEdge("forward", down=True),)),
                AxisInput(ControlId("a"), "cameraX", 0.5),
            ]
        )
        made = [out.frames[0] for out in rig.run_chunks("s1", 9)]
        wanted = public_loop(parts, seed=5, frames=9)
        assert TINY_DIT.window < 9
        for number, (one, other) in enumerate(zip(made, wanted, strict=True)):
            difference = (torch.from_numpy(one).int() - other.int()).abs().max()
            assert difference <= 1, f"frame {number} is off by {difference}"

    def test_an_action_row_holds_what_is_held_what_was_tapped_and_the_camera(self) -> None:
        tapped = (KeyEdge("jump", down=True), KeyEdge("jump", down=False))
        keys = {CONTROL: KeyInput(tapped, ("forward",))}
        row = action_row(Controls(keys=keys, axes={"cameraY": -3.0}))
        wanted = {"forward": 1.0, "jump": 1.0, "cameraY": -1.0}
        assert {name: float(v) for name, v in zip(ACTIONS, row, strict=True) if v} == wanted


def public_loop(parts: OasisParts, seed: int, frames: int) -> list[Tensor]:
    """Make frames as the public loop does: the whole window in every call, only its last kept."""
    config, ddim = parts.transformer.config, parts.ddim
    with torch.no_grad():
        latents = [parts.vae.encode(parts.starts[seed % len(parts.starts)][None])[0]]
        actions = [torch.zeros(len(ACTIONS))]
        for frame in range(1, frames):
            row = torch.zeros(len(ACTIONS))
            row[ACTIONS.index("forward")] = 1
            row[ACTIONS.index("cameraX")] = 0.5 if frame == 1 else 0
            actions.append(row)
            x = normal(seed, "frame", frame, tuple(latents[0].shape)).clamp(-20, 20)
            for index, level in enumerate(ddim.levels):
                seen = torch.stack([*latents, x])[-config.window :]
                labels = torch.full((1, len(seen)), CONTEXT_LEVEL)
                labels[0, -1] = level
                rows = torch.stack(actions)[-config.window :]
                v = parts.transformer(seen[None], labels, rows[None]).v_BFZhw[0, -1]
                x = ddim.step(x, v, index)
            latents.append(x)
        pictures = parts.vae.decode(torch.stack(latents)).clamp(0, 1)
    return list((pictures.permute(0, 2, 3, 1) * 255).round().to(torch.uint8))
