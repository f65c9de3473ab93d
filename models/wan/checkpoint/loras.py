"""LoRAs for Wan: their layers' names here, and the LoRA that is part of a checkpoint.

Public names come from peft, from diffusers and from trainings of the original code; layers of the
text encoder begin with `text_encoder.`. LongLive is published as a base and a `lora.pt` next to it,
which is part of the model and is merged.
"""

import re
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from reverie.models.contract.instance import AdapterOption
from reverie.models.services.adapters import FittedAdapters, fit_adapters
from reverie.models.services.checkpoint_report import CheckpointReport
from reverie.models.services.checkpoints import StoredTensor
from reverie.models.services.lora import LoraFile
from reverie.models.services.lora_files import read_lora
from reverie.models.wan.checkpoint.layouts import from_diffusers, from_training
from reverie.models.wan.checkpoint.transformer_files import TransformerFiles, bundled_lora
from reverie.models.wan.config import T2V_1_3B, T2V_14B, WanConfig
from reverie.models.wan.network.transformer import WanTransformer

BUNDLED_NAME = "longlive"
"""What the LoRA that comes with LongLive is called here."""

_TEXT = "text_encoder."
_FLAT = re.compile(r"lora_(?:unet|transformer)_+(?P<path>\w+)\.(?P<kind>weight|bias)")
"""Names without dots, as some trainers write them."""
_FLAT_TEXT = re.compile(
    r"lora_te\d?_encoder_block_(?P<block>\d+)_layer_(?P<layer>\d)_"
    r"(?P<part>SelfAttention|DenseReluDense)_(?P<name>\w+)\.weight"
)
_FLAT_PATHS = (
    (r"blocks_(\d+)_(self_attn|cross_attn)_(q|k|v|o|norm_q|norm_k)", r"blocks.\1.\2.\3"),
    (r"blocks_(\d+)_(attn1|attn2)_to_(q|k|v)", r"blocks.\1.\2.to_\3"),
    (r"blocks_(\d+)_(attn1|attn2)_to_out_0", r"blocks.\1.\2.to_out.0"),
    (r"blocks_(\d+)_(attn1|attn2)_(norm_q|norm_k)", r"blocks.\1.\2.\3"),
    (r"blocks_(\d+)_ffn_net_0_proj", r"blocks.\1.ffn.net.0.proj"),
    (r"blocks_(\d+)_ffn_net_2", r"blocks.\1.ffn.net.2"),
    (r"blocks_(\d+)_ffn_(\d)", r"blocks.\1.ffn.\2"),
    (r"blocks_(\d+)_(norm3|modulation)", r"blocks.\1.\2"),
    (r"(text|time)_(embedding|projection)_(\d)", r"\1_\2.\3"),
    (r"head_(head|modulation)", r"head.\1"),
    (r"patch_embedding", "patch_embedding"),
)
_WRAPPERS = ("base_model.model.", "diffusion_model.", "transformer.", "model.", "unet.")


def own_name(name: str) -> str:
    """Return the name of a weight here, with its component in front."""
    if name.startswith(_TEXT):
        return f"text.{name.removeprefix(_TEXT)}"
    if flat := _FLAT_TEXT.fullmatch(name):
        place = f"{flat['block']}.layer.{flat['layer']}.{flat['part']}.{flat['name']}"
        return f"text.encoder.block.{place}.weight"
    if (flat := _FLAT.fullmatch(name)) and (path := _dotted(flat["path"])):
        name = f"{path}.{flat['kind']}"
    while wrapper := next((each for each in _WRAPPERS if name.startswith(each)), ""):
        name = name.removeprefix(wrapper)
    return f"transformer.{from_diffusers(from_training(name))}"


def _dotted(flat: str) -> str:
    """Return the path of a name without dots; empty if it is unknown."""
    for pattern, path in _FLAT_PATHS:
        if match := re.fullmatch(pattern, flat):
            return match.expand(path)
    return ""


def bundled(files: TransformerFiles) -> tuple[AdapterOption, ...]:
    """Return the LoRA that is part of a published model; none for most."""
    lora = bundled_lora(files)
    if lora is None:
        return ()
    return (AdapterOption(BUNDLED_NAME, str(lora), merged=True, strength=1.0),)


def fit(
    options: tuple[AdapterOption, ...],
    transformer: WanTransformer,
    text: nn.Module | None,
    stored: dict[str, StoredTensor] | None = None,
) -> FittedAdapters:
    """Merge LoRAs into the networks, or attach them.

    Args:
        options: those that are part of a checkpoint, and the operator's.
        transformer: with its original weights.
        text: the text encoder, where it has weights.
        stored: the checkpoint of the transformer: original weights are read from it again, in the
            precision of the file.

    Raises:
        CheckpointError: one cannot be read, or does not fit; nothing has changed.
    """
    components: dict[str, nn.Module] = {"transformer": transformer}
    if text is not None:
        components["text"] = text

    def original_weight(path: str) -> Tensor:
        component, _, layer = path.partition(".")
        if stored is not None and component == "transformer":
            return stored[f"{layer}.weight"].read()
        weight = components[component].get_submodule(layer).weight
        assert isinstance(weight, Tensor), f"{path} was found to be a linear layer"
        return weight.clone()

    return fit_adapters(options, components, own_name, original_weight)


def check(
    path: Path, config: WanConfig | None = None, adapter: str | None = None
) -> CheckpointReport:
    """Compare a LoRA with the transformer that it is for; only headers are read.

    Args:
        path: a file or a folder.
        config: sizes of the transformer; None takes those of the published one whose layers fit.
        adapter: which one to take of a file with several.

    Raises:
        CheckpointError: it cannot be read, or is not a LoRA.
    """
    file = read_lora(path, own_name, adapter)
    with torch.device("meta"):
        model = nn.ModuleDict({"transformer": WanTransformer(config or _published(file))})
    report = file.inspect(model)
    # The sizes of the text encoder are not known here.
    rest = tuple(name for name in report.unmatched if not name.startswith("text."))
    return replace(report, unmatched=rest)


def _published(file: LoraFile) -> WanConfig:
    shapes = [half.shape for pair in file.pairs.values() for half in (pair.down, pair.up)]
    shapes += [addition.difference.shape for addition in file.additions]
    wide = any(T2V_14B.dim in shape for shape in shapes)
    return T2V_14B if wide else T2V_1_3B
