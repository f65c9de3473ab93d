"""Folders of language models, looked at before any weight is read."""

import json
import re
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from transformers import T5Config

from reverie.cli import main
from reverie.models.causal_lm.checkpoint.loading import random_model
from reverie.models.causal_lm.spec import CausalLm
from reverie.models.contract.errors import CheckpointError
from reverie.models.contract.instance import LoadOptions


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model, tokenizer = random_model()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return tmp_path


def load(folder: Path) -> None:
    CausalLm().load(LoadOptions(device="cpu", checkpoint=str(folder), sessions=1))


def test_check_finds_out_that_it_is_a_language_model(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "check", str(folder)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("causal_lm, layout transformers, LlamaForCausalLM: 21 tensors fit")


def test_without_a_tokenizer_it_is_refused_in_a_sentence(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    [lacking] = CausalLm().check(str(folder)).lacking
    assert lacking.startswith("a tokenizer (tokenizer.json")
    with pytest.raises(
        CheckpointError, match=r"files missing to serve it: a tokenizer \(tokenizer\.json"
    ):
        load(folder)


def test_weights_that_are_missing_are_not_made_up(folder: Path) -> None:
    held = load_file(folder / "model.safetensors")
    del held["model.layers.1.mlp.up_proj.weight"]
    save_file(held, folder / "model.safetensors", {"format": "pt"})
    said = (
        r"missing from the checkpoint \(1\): model\.layers\.1\.mlp\.up_proj\.weight "
        r"\(model\.safetensors\)"
    )
    assert re.search(said, "; ".join(CausalLm().check(str(folder)).lines()))
    with pytest.raises(CheckpointError, match=said):
        load(folder)


def test_a_shard_that_the_index_names_and_nobody_has_is_told(folder: Path) -> None:
    shards = {"weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(shards))
    (folder / "model.safetensors").unlink()
    [fault] = CausalLm().check(str(folder)).faults
    assert (
        "is missing model-00001-of-00002.safetensors, which model.safetensors.index.json" in fault
    )


def test_a_model_of_another_kind_is_named_by_its_kind(folder: Path) -> None:
    T5Config().save_pretrained(folder)
    with pytest.raises(CheckpointError, match="model_type 't5' is not a decoder-only"):
        CausalLm().check(str(folder))


def test_a_tensor_of_another_shape_is_told(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 64}))
    report = CausalLm().check(str(folder))
    assert not report.fits
    assert any(
        "mlp.down_proj.weight is [32, 48], not [32, 64]" in line for line in report.misshapen
    )
