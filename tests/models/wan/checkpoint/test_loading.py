"""Checkpoints in their public layouts, tiny and random."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from diffusers import WanTransformer3DModel
from safetensors.torch import save_file
from wan_folders import SIZES, longlive, original, self_forcing, weights, write_rest

from reverie.cli import main
from reverie.models.bare_loop import BareLoop
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import LoadOptions
from reverie.models.contract.loop import LoopRequest
from reverie.models.wan.checkpoint.contents import causal_of, find_transformer
from reverie.models.wan.checkpoint.layouts import from_diffusers
from reverie.models.wan.config import LONGLIVE
from reverie.models.wan.network.transformer import WanTransformer
from reverie.models.wan.spec import Wan

PORT: Any = WanTransformer3DModel
"""As diffusers has it, which types none of it."""


def ported(folder: Path) -> Any:
    """Write the diffusers port, and return it."""
    model = PORT(
        num_attention_heads=1,
        attention_head_dim=128,
        text_dim=16,
        freq_dim=32,
        ffn_dim=32,
        num_layers=2,
    )
    own = weights()
    model.load_state_dict({name: own[from_diffusers(name)] for name in model.state_dict()})
    model.save_pretrained(folder / "transformer")
    return model.eval()


LAYOUTS = {
    "Self-Forcing": self_forcing,
    "LongLive": longlive,
    "Wan 2.1": original,
    "diffusers": ported,
}


@pytest.mark.parametrize("layout", LAYOUTS)
class TestLayouts:
    """The same weights, stored in different ways."""

    def test_every_tensor_has_its_place(self, layout: str, tmp_path: Path) -> None:
        LAYOUTS[layout](tmp_path)
        found = find_transformer(tmp_path)
        assert found.report.fits
        assert (found.report.layout, found.config) == (layout, SIZES)
        for name, wanted in weights().items():
            assert torch.equal(found.stored[name].read(), wanted)


@pytest.mark.parametrize(
    ("name", "key"), [("longlive_base.pt", "generator"), ("self_forcing_dmd.pt", "generator_ema")]
)
def test_of_two_trainings_in_a_file_the_one_is_read_that_its_own_pipeline_reads(
    name: str, key: str, tmp_path: Path
) -> None:
    held = {f"model.{path}": value for path, value in weights().items()}
    other = {path: torch.zeros_like(value) for path, value in held.items()}
    torch.save({"generator": other, "generator_ema": other, key: held}, tmp_path / name)
    for place in (tmp_path, tmp_path / name):
        read = find_transformer(place).stored["patch_embedding.weight"].read()
        assert torch.equal(read, weights()["patch_embedding.weight"])


def test_names_of_a_sharded_training_are_unwrapped(tmp_path: Path) -> None:
    self_forcing(tmp_path, wrapped="_fsdp_wrapped_module.")
    assert find_transformer(tmp_path).report.fits


def test_a_ported_model_computes_what_the_port_computes(tmp_path: Path) -> None:
    port = ported(tmp_path)
    own = WanTransformer(SIZES)
    own.load_state_dict({n: s.read() for n, s in find_transformer(tmp_path).stored.items()})
    random = torch.Generator().manual_seed(5)
    x = torch.randn(1, 16, 3, 4, 6, generator=random)
    text = torch.randn(1, 512, 16, generator=random)
    with torch.no_grad():
        wanted = port(x, torch.tensor([700.0]), text).sample
        levels = torch.full((1, 3), 700.0)
        made = own(x.transpose(1, 2), levels, own.read_prompt(text), None, (0,)).flow_BFZhw
    torch.testing.assert_close(made.transpose(1, 2), wanted, atol=1e-5, rtol=1e-5)


def small_heads(folder: Path) -> Any:
    """Write a port of two heads of 24, and return it."""
    torch.manual_seed(4)
    model = PORT(
        num_attention_heads=2,
        attention_head_dim=24,
        text_dim=16,
        freq_dim=32,
        ffn_dim=32,
        num_layers=2,
    )
    model.save_pretrained(folder / "transformer")
    return model.eval()


def test_heads_are_those_that_the_port_says(tmp_path: Path) -> None:
    port = small_heads(tmp_path)
    found = find_transformer(tmp_path)
    assert found.report.fits
    assert (found.config.num_heads, found.config.head_size) == (2, 24)
    own = WanTransformer(found.config)
    own.load_state_dict({name: tensor.read() for name, tensor in found.stored.items()})
    random = torch.Generator().manual_seed(5)
    x = torch.randn(1, 16, 2, 4, 6, generator=random)
    text = torch.randn(1, 512, 16, generator=random)
    with torch.no_grad():
        wanted = port(x, torch.tensor([700.0]), text).sample
        levels = torch.full((1, 2), 700.0)
        made = own(x.transpose(1, 2), levels, own.read_prompt(text), None, (0,)).flow_BFZhw
    torch.testing.assert_close(made.transpose(1, 2), wanted, atol=1e-5, rtol=1e-5)


def test_a_folder_becomes_a_model_that_makes_video(tmp_path: Path) -> None:
    self_forcing(tmp_path)
    write_rest(tmp_path)
    family = Wan()
    instance = family.load(LoadOptions(device="cpu", checkpoint=str(tmp_path), sessions=1))
    stream = instance.spec.loops[0].streams[0]
    assert (stream.width, stream.height) == (48, 32)
    kernel = family.kernel("video_continuation", instance)
    loop = BareLoop(kernel, instance, LoopRequest("s1", 1, "a lake", {"on_prompt": 1}))
    loop.advance(3)
    assert loop.frames == 9 + 12 + 12
    assert instance.encodings.misses == 1


def test_longlive_brings_its_window_and_its_recache(tmp_path: Path) -> None:
    longlive(tmp_path)
    write_rest(tmp_path)
    (tmp_path / "causal.json").unlink()
    family = Wan()
    instance = family.load(LoadOptions(device="cpu", checkpoint=str(tmp_path), sessions=1))
    loop = instance.spec.loops[0]
    assert (loop.window_blocks, loop.rebuild_blocks) == (LONGLIVE.local, LONGLIVE.local)


class TestCheck:
    """`reverie models check`."""

    def test_it_says_that_a_checkpoint_fits(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        original(tmp_path)
        write_rest(tmp_path)
        assert main(["models", "check", str(tmp_path)]) == 0
        assert capsys.readouterr().out.splitlines() == [
            "wan, layout Wan 2.1, with Wan VAE, with umT5: 227 tensors fit (227 F32)",
            "  transformer: diffusion_pytorch_model.safetensors",
            "  vae: vae/diffusion_pytorch_model.safetensors",
            "  text encoder: text_encoder/model.safetensors",
            "  tokenizer: tokenizer/tokenizer.json",
        ]

    def test_it_names_what_is_lacking_beside_the_transformer(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        original(tmp_path)
        assert main(["models", "check", str(tmp_path)]) == 1
        lacks = (
            "files missing to serve it: a VAE (vae/ or Wan2.1_VAE.pth); text_encoder/; tokenizer/"
        )
        assert lacks in capsys.readouterr().out

    def test_it_looks_into_causal_json(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        original(tmp_path)
        (tmp_path / "causal.json").write_text('{"colour": 1}')
        assert main(["models", "check", "--model", "wan", str(tmp_path)]) == 1
        assert "causal.json has unknown fields: colour" in capsys.readouterr().out

    def test_it_fails_and_says_why_one_does_not(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        held = weights()
        held["more"] = torch.zeros(1)
        save_file(held, tmp_path / "diffusion_pytorch_model.safetensors")
        assert main(["models", "check", str(tmp_path)]) == 1
        assert "tensors that the model does not have (1): more" in capsys.readouterr().out


class TestRefusals:
    """What does not fit is refused, with all that is wrong with it."""

    def test_a_report_names_what_is_over_what_is_missing_and_what_has_another_shape(
        self, tmp_path: Path
    ) -> None:
        held = weights()
        held["blocks.0.self_attn.extra"] = torch.zeros(1)
        del held["blocks.1.ffn.2.bias"]
        held["head.modulation"] = torch.zeros(1, 2, 64)
        save_file(held, tmp_path / "diffusion_pytorch_model.safetensors")
        report = find_transformer(tmp_path).report
        assert not report.fits
        assert report.unmatched == ("blocks.0.self_attn.extra",)
        assert report.missing == ("blocks.1.ffn.2.bias",)
        assert report.misshapen == ("head.modulation is [1, 2, 64], not [1, 2, 128]",)
        with pytest.raises(CheckpointError, match=r"blocks\.1\.ffn\.2\.bias"):
            Wan().load(LoadOptions(device="cpu", checkpoint=str(tmp_path)))

    def test_a_file_that_could_run_code_is_not_run(self, tmp_path: Path) -> None:
        torch.save({"generator": Path("x")}, tmp_path / "model.pt")
        with pytest.raises(CheckpointError, match=r"cannot read .*can run code are not loaded$"):
            find_transformer(tmp_path)

    @pytest.mark.parametrize("missing", ["vae", "text_encoder", "tokenizer"])
    def test_a_missing_part_is_named(self, missing: str, tmp_path: Path) -> None:
        self_forcing(tmp_path)
        write_rest(tmp_path)
        (tmp_path / missing).rename(tmp_path / "elsewhere")
        with pytest.raises(CheckpointError, match=missing):
            Wan().load(LoadOptions(device="cpu", checkpoint=str(tmp_path)))

    def test_a_folder_of_something_else_is_no_checkpoint(self, tmp_path: Path) -> None:
        with pytest.raises(CheckpointError, match="has none of the known layouts"):
            find_transformer(tmp_path)

    def test_sizes_that_cannot_be_are_refused_by_the_file_that_says_them(
        self, tmp_path: Path
    ) -> None:
        self_forcing(tmp_path)
        write_rest(tmp_path)
        (tmp_path / "causal.json").write_text('{"height": 33}')
        with pytest.raises(
            CheckpointError,
            match=r"causal\.json: width and height must be multiples of 16, not 832x33",
        ):
            Wan().load(LoadOptions(device="cpu", checkpoint=str(tmp_path)))

    @pytest.mark.parametrize(
        ("layout", "field", "value", "words"),
        [
            (original, "num_heads", 0, "num_heads must be a whole number from 1, not 0"),
            (original, "num_heads", 3, "num_heads must divide the 128 channels evenly, not 3"),
            (original, "num_heads", None, "num_heads is missing"),
            (original, "dim", 256, "dim is 256, but the tensors have 128"),
            (original, "num_layers", 3, "num_layers is 3, but the tensors have 2"),
            (original, "patch_size", [1, 4, 4], "patch_size is .*, but the tensors have"),
            (original, "model_type", "i2v", "model_type must be t2v, not 'i2v'"),
            (ported, "num_attention_heads", 2, r"\* attention_head_dim is 256, but .* have 128"),
            (
                ported,
                "attention_head_dim",
                "128",
                "attention_head_dim must be a whole number from 1, not '128'",
            ),
            (ported, "in_channels", 36, "in_channels is 36, but the tensors have 16"),
            (ported, "patch_size", 2, "patch_size is 2, but the tensors have"),
            (ported, "qk_norm", None, "qk_norm None is not supported"),
        ],
    )
    def test_a_configuration_that_the_tensors_deny_is_refused_by_its_field(
        self, layout: Callable[[Path], Any], field: str, value: object, words: str, tmp_path: Path
    ) -> None:
        layout(tmp_path)
        [path] = (path for path in tmp_path.rglob("config.json"))
        path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
        with pytest.raises(CheckpointError, match=rf"config\.json: .*{words}"):
            find_transformer(tmp_path)

    def test_heads_that_nobody_says_are_not_guessed_for_odd_sizes(self, tmp_path: Path) -> None:
        small_heads(tmp_path)
        (tmp_path / "transformer" / "config.json").unlink()
        with pytest.raises(CheckpointError, match=r"needs a config\.json .*: 48 channels"):
            find_transformer(tmp_path)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("local", "six"),
            ("levels", [9000, "x"]),
            ("levels", [250, 1000]),
            ("levels", 7),
            ("height", 32.0),
            ("recache", "yes"),
            ("shift", None),
        ],
    )
    def test_a_field_of_the_wrong_kind_is_named_with_its_file(
        self, field: str, value: object, tmp_path: Path
    ) -> None:
        (tmp_path / "causal.json").write_text(json.dumps({field: value}))
        with pytest.raises(CheckpointError, match=rf"causal\.json: {field} must be "):
            causal_of(tmp_path)

    def test_no_checkpoint_at_all_says_what_to_name(self) -> None:
        with pytest.raises(CheckpointError, match="set checkpoint to a folder, or to `random`"):
            Wan().load(LoadOptions(device="cpu"))
