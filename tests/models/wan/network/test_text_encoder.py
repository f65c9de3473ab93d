"""Prompts as rows: what Wan's own umT5 and its cleaning make of them."""

import json
import shutil
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from recorded_wan import GOLDENS, WEIGHTS, metadata, write_vae
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import UMT5Config, UMT5EncoderModel

from reverie.models.contract.instance import LoadOptions
from reverie.models.wan.components import WanComponents
from reverie.models.wan.network.text_encoder import cleaned
from reverie.models.wan.spec import Wan

GOLDEN = GOLDENS / "umt5" / "encode.safetensors"
META = metadata(GOLDEN, "meta")
PROMPTS = range(len(META["prompts"]))
TOLERANCE = 1e-5


@dataclass
class Published:
    """A folder's components, and the numbers that its text encoder is held to."""

    components: WanComponents
    numbers: dict[str, Tensor]

    def encoded(self, prompt: str) -> Tensor:
        return self.components.text.encode(prompt)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    """Load a folder whose text encoder has the recorded weights."""
    folder, numbers = tmp_path_factory.mktemp("published"), load_file(GOLDEN)
    save_file(load_file(WEIGHTS), folder / "diffusion_pytorch_model.safetensors")
    sizes = metadata(WEIGHTS, "cfg") | {"text_len": META["text_len"]}
    (folder / "config.json").write_text(json.dumps(sizes))
    write_vae(folder)
    encoder: Any = UMT5EncoderModel(UMT5Config(**META["transformers"]))
    held = {k.removeprefix("weights."): v for k, v in numbers.items() if k.startswith("weights.")}
    held["encoder.embed_tokens.weight"] = held["shared.weight"]
    encoder.load_state_dict(held)
    encoder.save_pretrained(folder / "text_encoder")
    shutil.copytree(GOLDENS / "umt5" / "tokenizer", folder / "tokenizer")
    family = Wan()
    instance = family.load(LoadOptions(device="cpu", checkpoint=str(folder), sessions=1))
    return Published(family._components[instance.name], numbers)


@pytest.mark.parametrize("number", PROMPTS)
def test_a_prompt_is_encoded_as_the_original_code_encodes_it(
    published: Published, number: int
) -> None:
    made, wanted = (
        published.encoded(META["prompts"][number]),
        published.numbers[f"out.rows.{number}"],
    )
    assert made.shape == wanted.shape
    torch.testing.assert_close(made, wanted, atol=TOLERANCE, rtol=0)


def test_recorded_prompts_reach_beyond_every_bucket_of_distance_and_are_cut(
    published: Published,
) -> None:
    lengths = [len(published.numbers[f"out.rows.{number}"]) for number in PROMPTS]
    farthest = META["transformers"]["relative_attention_max_distance"]
    assert farthest < max(lengths) == META["text_len"]
    assert min(lengths) == 1, "of the empty prompt its end is left"


@pytest.mark.parametrize("number", PROMPTS)
def test_a_prompt_is_cleaned_as_the_original_code_cleans_it(number: int) -> None:
    assert cleaned(META["prompts"][number]) == META["cleaned"][number]


def test_cleaning_changed_some_of_the_recorded_prompts() -> None:
    assert sum(a != b for a, b in zip(META["prompts"], META["cleaned"], strict=True)) >= 3


def test_rows_that_fill_a_prompt_up_are_zeros_as_in_the_public_pipelines(
    published: Published,
) -> None:
    padded, transformer = published.numbers["out.padded.0"], published.components.transformer
    rows = published.encoded(META["prompts"][0])
    assert len(padded) == META["text_len"] > len(rows)
    with torch.no_grad():
        made = transformer.read_prompt(rows[None])
        wanted = transformer.read_prompt(padded[None])
    for one, other in zip(made, wanted, strict=True):
        torch.testing.assert_close(one.k_BAKd, other.k_BAKd, atol=TOLERANCE, rtol=0)
        torch.testing.assert_close(one.v_BAKd, other.v_BAKd, atol=TOLERANCE, rtol=0)
