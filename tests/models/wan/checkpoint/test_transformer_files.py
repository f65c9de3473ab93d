"""Which file of a folder is served when several could be."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from lora_files import pairs_for, tensors_of
from safetensors.torch import save_file
from torch import Tensor
from wan_folders import longlive, original, self_forcing, weights, write_rest

from reverie.cli import main
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import LoadOptions
from reverie.models.wan.components import WanComponents
from reverie.models.wan.config import LONGLIVE, SELF_FORCING
from reverie.models.wan.spec import Wan

Q = "blocks.0.self_attn.q"


def marked(folder: Path, name: str, mark: float) -> Path:
    """Write a transformer of its own, known again by one of its weights."""
    held: dict[str, Tensor] = weights()
    held["head.head.bias"] = torch.full_like(held["head.head.bias"], mark)
    path = folder / name
    if path.suffix == ".safetensors":
        save_file(held, path)
    else:
        torch.save({"generator": {f"model.{n}": value for n, value in held.items()}}, path)
    return path


def load(checkpoint: Path, parts: Path | None = None) -> tuple[WanComponents, str]:
    family = Wan()
    options = LoadOptions(
        device="cpu",
        checkpoint=str(checkpoint),
        parts=None if parts is None else str(parts),
        sessions=1,
    )
    instance = family.load(options)
    return family._components[instance.name], instance.weights_version


def mark_of(parts: WanComponents) -> float:
    bias = parts.transformer.head.head.bias
    return float(bias[0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with base weights and everything else."""
    original(tmp_path)
    write_rest(tmp_path)
    return tmp_path


class TestRule:
    """Weights in a file of their own are taken before the base next to them."""

    @pytest.mark.parametrize(
        "name",
        [
            "self_forcing_dmd.pt",
            "longlive_base.pt",
            "rolling_forcing.pt",
            "mine.pth",
            "self_forcing_dmd.safetensors",
        ],
    )
    def test_distilled_weights_are_served_and_the_base_is_said_to_be_left(
        self, name: str, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        marked(folder, name, 7.0)
        assert main(["models", "check", str(folder)]) == 0
        told = capsys.readouterr().out
        assert f"  transformer: {name}\n" in told
        left = f"diffusion_pytorch_model.safetensors (base weights: {name} has precedence)"
        assert f"  not read: {left}\n" in told
        assert mark_of(load(folder)[0]) == 7.0

    def test_the_window_is_that_of_the_weights_that_are_taken(self, folder: Path) -> None:
        (folder / "causal.json").write_text('{"height": 32, "width": 48}')
        marked(folder, "longlive_base.pt", 7.0)
        assert load(folder)[0].causal == LONGLIVE
        (folder / "longlive_base.pt").rename(folder / "self_forcing_dmd.pt")
        assert load(folder)[0].causal == SELF_FORCING

    def test_a_lora_next_to_other_weights_is_not_merged_and_is_named(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        marked(folder, "self_forcing_dmd.pt", 7.0)
        pairs = pairs_for(load(folder)[0].transformer, (Q,), 1)
        torch.save(tensors_of(pairs), folder / "lora.pt")
        assert main(["models", "check", str(folder)]) == 0
        assert (
            "not read: lora.pt (a LoRA: serve it with --lora NAME=PATH" in capsys.readouterr().out
        )
        assert "longlive@" not in load(folder)[1]

    def test_what_is_no_transformer_is_left_alone_and_named(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        torch.save({"clip.weight": torch.zeros(1)}, folder / "clip.pth")
        assert main(["models", "check", str(folder)]) == 0
        assert "not read: clip.pth (not a Wan transformer)" in capsys.readouterr().out


class TestSeveral:
    """The operator must name one of them."""

    @pytest.mark.parametrize(
        "place",
        [
            "CausVid/autoregressive_checkpoint/model.pt",
            "autoregressive_checkpoint_warp_4step_cfg2/model.pt",
            "causvid/model.pt",
            "causvid_1.3b.pt",
        ],
    )
    def test_causvid_is_refused_and_not_sampled_as_self_forcing(
        self, place: str, tmp_path: Path
    ) -> None:
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        marked(path.parent, path.name, 1.0)
        write_rest(path.parent)
        for checkpoint in (path, path.parent):
            with pytest.raises(CheckpointError, match="CausVid is not supported"):
                load(checkpoint)

    def test_a_file_that_could_be_causvid_is_said_to_be_either(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write_rest(tmp_path)
        path = marked(tmp_path, "model.pt", 1.0)
        assert main(["models", "check", str(path), "--model", "wan"]) == 0
        assert "Self-Forcing or CausVid" in capsys.readouterr().out

    def test_two_distilled_ones_are_refused_by_name_and_one_can_be_named(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        one = marked(folder, "longlive_base.pt", 1.0)
        two = marked(folder, "self_forcing_dmd.pt", 2.0)
        words = "contains 2 transformers, longlive_base.pt and self_forcing_dmd.pt: choose one"
        assert main(["models", "check", "--model", "wan", str(folder)]) == 1
        told = capsys.readouterr().out
        assert words in told
        assert f"--checkpoint {one}" in told
        with pytest.raises(CheckpointError, match=words):
            load(folder)
        versions = set()
        for path, mark in ((one, 1.0), (two, 2.0)):
            assert main(["models", "check", str(path)]) == 0
            parts, version = load(path)
            assert mark_of(parts) == mark
            versions.add(version)
        assert len(versions) == 2

    def test_two_bases_are_refused(self, folder: Path) -> None:
        (folder / "transformer").mkdir()
        shutil.copy(
            folder / "diffusion_pytorch_model.safetensors", folder / "transformer" / "x.safetensors"
        )
        with pytest.raises(CheckpointError, match="contains 2 transformers, transformer/x"):
            load(folder)

    def test_the_published_names_of_one_training_are_several_too(self, tmp_path: Path) -> None:
        write_rest(tmp_path)
        self_forcing(tmp_path)
        longlive(tmp_path)
        with pytest.raises(CheckpointError, match="choose one by its path"):
            load(tmp_path)


class TestParts:
    """A file here, and the rest of it there."""

    def test_they_may_lie_in_another_folder(
        self, folder: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        elsewhere = tmp_path_factory.mktemp("elsewhere")
        file = marked(elsewhere, "mine.pt", 3.0)
        assert main(["models", "check", str(file), "--parts", str(folder)]) == 0
        assert mark_of(load(file, folder)[0]) == 3.0

    def test_a_file_alone_lacks_them_for_check_and_for_serve(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = marked(tmp_path, "mine.pt", 3.0)
        lacks = (
            "files missing to serve it: a VAE (vae/ or Wan2.1_VAE.pth); text_encoder/; tokenizer/"
        )
        assert main(["models", "check", str(file)]) == 1
        assert lacks in capsys.readouterr().out
        with pytest.raises(CheckpointError) as refused:
            load(file)
        assert lacks in str(refused.value)

    def test_heads_are_those_of_the_configuration_next_to_the_file(
        self, folder: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        elsewhere = tmp_path_factory.mktemp("elsewhere")
        file = marked(elsewhere, "mine.pt", 3.0)
        values = json.loads((folder / "config.json").read_text())
        (elsewhere / "config.json").write_text(json.dumps(values | {"num_heads": 2}))
        assert load(file, folder)[0].transformer.config.num_heads == 2
