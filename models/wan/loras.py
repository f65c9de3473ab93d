"""LoRAs for Wan: what their layers are called here, and those that a checkpoint brings along.

Public names come from peft, from diffusers and from the trainings of the original code; text
encoders are adapted under `text_encoder.`. LongLive is published as a base and a `lora.pt` beside
it, which is part of the model: it is merged.
"""

import re
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from reverie.models.adapters import Fitted, fit_adapters
from reverie.models.checkpoints import CheckpointReport, StoredTensor
from reverie.models.instance import AdapterOption
from reverie.models.lora import LoraFile, read_lora
from reverie.models.wan.config import T2V_1_3B, T2V_14B, WanConfig
from reverie.models.wan.layouts import from_diffusers, from_training
from reverie.models.wan.transformer import WanTransformer

BROUGHT = "lora.pt"
"""What LongLive's own LoRA is called."""

_TEXT = "text_encoder."
_FLAT = re.compile(
    r"lora_unet_blocks_(?P<block>\d+)_(?P<part>self_attn|cross_attn|ffn)_(?P<layer>\w+)\.weight"
)
"""Names without dots, as some trainers write them."""
_WRAPPERS = ("diffusion_model.", "transformer.")


def own_name(name: str) -> str:
    """Return what a weight is called here, its component in front."""
    if name.startswith(_TEXT):
        return f"text.{name.removeprefix(_TEXT)}"
    if flat := _FLAT.fullmatch(name):
        return f"transformer.blocks.{flat['block']}.{flat['part']}.{flat['layer']}.weight"
    for wrapper in _WRAPPERS:
        name = name.removeprefix(wrapper)
    return f"transformer.{from_diffusers(from_training(name))}"


def brought_along(folder: Path) -> tuple[AdapterOption, ...]:
    """Return the LoRA that is part of a published model; none for most."""
    lora = folder / BROUGHT
    if not lora.is_file() or not any(folder.glob("*longlive*.pt")):
        return ()
    return (AdapterOption("longlive", str(lora), merged=True, strength=1.0),)


def fit(
    options: tuple[AdapterOption, ...],
    transformer: WanTransformer,
    text: nn.Module | None,
    stored: dict[str, StoredTensor] | None = None,
) -> Fitted:
    """Merge LoRAs into the networks, or put them beside.

    Args:
        options: those that a checkpoint brings along, and the operator's.
        transformer: with its true weights.
        text: the text encoder, where it has weights.
        stored: the checkpoint of the transformer: true weights are read from it once more, in the
            precision that they were stored in.

    Raises:
        CheckpointError: one cannot be read, or does not fit; nothing has changed.
    """
    components: dict[str, nn.Module] = {"transformer": transformer}
    if text is not None:
        components["text"] = text

    def true_weight(path: str) -> Tensor:
        component, _, layer = path.partition(".")
        if stored is not None and component == "transformer":
            return stored[f"{layer}.weight"].read()
        weight = components[component].get_submodule(layer).weight
        assert isinstance(weight, Tensor), f"{path} was found to be a linear layer"
        return weight.clone()

    return fit_adapters(options, components, own_name, true_weight)


def check(path: Path, config: WanConfig | None = None) -> CheckpointReport:
    """Compare a LoRA with the transformer that it is for; only headers are read.

    Args:
        path: a file or a folder.
        config: sizes of the transformer; None takes those of the published one whose layers fit.

    Raises:
        CheckpointError: it cannot be read, or is no LoRA.
    """
    file = read_lora(path, own_name)
    with torch.device("meta"):
        model = nn.ModuleDict({"transformer": WanTransformer(config or _published(file))})
    report = file.inspect(model)
    # The text encoder's sizes are known only where it is.
    rest = tuple(name for name in report.unmatched if not name.startswith("text."))
    return replace(report, unmatched=rest)


def _published(file: LoraFile) -> WanConfig:
    wide = any(T2V_14B.dim in (*pair.down.shape, *pair.up.shape) for pair in file.pairs.values())
    return T2V_14B if wide else T2V_1_3B
