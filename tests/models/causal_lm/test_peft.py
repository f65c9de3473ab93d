"""LoRAs as peft itself adds them: recorded logits of a tiny random Llama."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from reverie.models.causal_lm.checkpoint.loading import load_chat, random_model
from reverie.models.causal_lm.components import ChatComponents
from reverie.models.contract.instance import AdapterOption, LoadOptions

GOLDEN = Path(__file__).resolve().parents[2] / "goldens" / "peft" / "lora.safetensors"
CASES = ("plain", "rooted", "patterns", "regex")
TOLERANCE = 2e-5


def part(numbers: dict[str, Tensor], first: str) -> dict[str, Tensor]:
    return {k.removeprefix(first): v for k, v in numbers.items() if k.startswith(first)}


@pytest.fixture(scope="module")
def numbers() -> dict[str, Tensor]:
    return load_file(GOLDEN)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, numbers: dict[str, Tensor]) -> Path:
    """Write the model, and each adapter as peft saved it."""
    folder = tmp_path_factory.mktemp("published")
    with safe_open(GOLDEN, "pt") as file:
        meta: dict[str, Any] = json.loads(file.metadata()["meta"])
    model: Any = LlamaForCausalLM(LlamaConfig(**meta["base"]))
    model.load_state_dict(part(numbers, "base."))
    model.save_pretrained(folder / "base")
    random_model()[1].save_pretrained(folder / "base")
    for case in CASES:
        (folder / case).mkdir()
        config = folder / case / "adapter_config.json"
        config.write_text(json.dumps(meta["adapters"][case]))
        held = {name: value.clone() for name, value in part(numbers, f"{case}:").items()}
        save_file(held, folder / case / "adapter_model.safetensors")
    return folder


def loaded(published: Path, *adapters: AdapterOption) -> ChatComponents:
    options = LoadOptions(
        device="cpu", checkpoint=str(published / "base"), sessions=1, adapters=adapters
    )
    return load_chat(options).components


def assert_logits(components: ChatComponents, numbers: dict[str, Tensor], wanted: str) -> None:
    model: Any = components.model
    with torch.no_grad():
        made = model(numbers["in.ids"]).logits[0]
    torch.testing.assert_close(made, numbers[wanted], atol=TOLERANCE, rtol=TOLERANCE)


@pytest.mark.parametrize("case", CASES)
def test_a_merged_adapter_gives_pefts_logits(
    published: Path, numbers: dict[str, Tensor], case: str
) -> None:
    adapter = AdapterOption("one", str(published / case), merged=True, strength=1.0)
    assert_logits(loaded(published, adapter), numbers, f"out.{case}")


@pytest.mark.parametrize("case", CASES)
def test_a_chosen_adapter_gives_pefts_logits_and_none_the_models_own(
    published: Path, numbers: dict[str, Tensor], case: str
) -> None:
    components = loaded(published, AdapterOption("one", str(published / case)))
    with components.adapters.applied(components.adapters.mix({"lora_one": 1.0})):
        assert_logits(components, numbers, f"out.{case}")
    assert_logits(components, numbers, "out.base")
