"""The public layouts of causal Wan's weights, and the sizes that they imply.

Source: the published checkpoints of Wan 2.1, its diffusers port, Self-Forcing and LongLive.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from reverie.models.contract.errors import CheckpointError
from reverie.models.services.checkpoints import CheckpointManifest, StoredTensor
from reverie.models.wan.checkpoint.public_config import read_public_config
from reverie.models.wan.config import WanConfig

HEAD_SIZE = 128
"""The same for all published sizes; tensors do not imply it (`public_config.py`)."""

ORIGINAL_VAE = "Wan2.1_VAE.pth"
VAES = ("vae", ORIGINAL_VAE)
TEXT_PARTS = ("text_encoder", "tokenizer")

_FROM_DIFFUSERS = (
    (r"^condition_embedder\.time_embedder\.linear_1\.", "time_embedding.0."),
    (r"^condition_embedder\.time_embedder\.linear_2\.", "time_embedding.2."),
    (r"^condition_embedder\.text_embedder\.linear_1\.", "text_embedding.0."),
    (r"^condition_embedder\.text_embedder\.linear_2\.", "text_embedding.2."),
    (r"^condition_embedder\.time_proj\.", "time_projection.1."),
    (r"\.attn1\.to_(q|k|v)\.", r".self_attn.\1."),
    (r"\.attn2\.to_(q|k|v)\.", r".cross_attn.\1."),
    (r"\.attn1\.to_out\.0\.", ".self_attn.o."),
    (r"\.attn2\.to_out\.0\.", ".cross_attn.o."),
    (r"\.attn1\.norm_", ".self_attn.norm_"),
    (r"\.attn2\.norm_", ".cross_attn.norm_"),
    (r"\.norm2\.", ".norm3."),  # the one norm with weights, which diffusers numbers differently
    (r"\.ffn\.net\.0\.proj\.", ".ffn.0."),
    (r"\.ffn\.net\.2\.", ".ffn.2."),
    (r"^(blocks\.\d+)\.scale_shift_table$", r"\1.modulation"),
    (r"^scale_shift_table$", "head.modulation"),
    (r"^proj_out\.", "head.head."),
)
_WRAPPED = re.compile(r"^(?:model|diffusion_model)\.")


def from_diffusers(name: str) -> str:
    """Return the original name of a tensor of the diffusers port."""
    for pattern, original in _FROM_DIFFUSERS:
        name = re.sub(pattern, original, name)
    return name


def from_training(name: str) -> str:
    """Return the original name of a tensor that a trainer or a tool has prefixed."""
    name = name.replace("_fsdp_wrapped_module.", "")
    while (inner := _WRAPPED.sub("", name)) != name:
        name = inner
    return name


def own_name(name: str) -> str:
    """Return the original name of a tensor in any layout."""
    return from_diffusers(from_training(name))


PORT = CheckpointManifest("diffusers", ("transformer/*.safetensors",), own_name)
ORIGINAL = CheckpointManifest("Wan 2.1", ("diffusion_pytorch_model*.safetensors",), own_name)
SELF_FORCING = CheckpointManifest(
    "Self-Forcing",
    ("*self_forcing*.pt", "model.pt", "generator*.pt"),
    own_name,
    ("generator_ema", "generator", "model", "state_dict"),
)
LONGLIVE = CheckpointManifest(
    "LongLive",
    ("*longlive*.pt",),
    own_name,
    # Its LoRA was trained on the plain weights, and its own pipeline uses them.
    ("generator", "generator_ema", "model", "state_dict"),
)
UNNAMED = replace(
    SELF_FORCING,
    layout="Self-Forcing or CausVid (their files look the same; sampled as Self-Forcing)",
)
"""A `model.pt` whose path names neither: both trainings save tensors with the same names."""
LAYOUTS = (PORT, ORIGINAL, SELF_FORCING, LONGLIVE)
FIRST_WEIGHT = "patch_embedding.weight"
"""A tensor that all Wan transformers have, and no other model."""


def layout_of(file: Path) -> CheckpointManifest:
    """Return the layout of a transformer's file, or of one of its shards.

    Raises:
        CheckpointError: it is CausVid's, which is sampled with other steps.
    """
    if is_causvid(file):
        raise CheckpointError(
            f"{file} is CausVid, by the name of the file or folder, and CausVid is not supported"
        )
    if file.parent.name == "transformer":
        return PORT
    if file.suffix == ".safetensors":
        return ORIGINAL
    if is_longlive(file):
        return LONGLIVE
    folder = file.resolve().parent
    named = any("forcing" in each.name.lower() for each in (folder, folder.parent))
    return UNNAMED if file.name == "model.pt" and not named else SELF_FORCING


def is_causvid(file: Path) -> bool:
    """Tell whether a file is CausVid's, by its name or by the published names of its folders."""
    name, folder = file.name.lower(), file.resolve().parent
    if "forcing" in name or "longlive" in name:
        return False
    names = (name, folder.name.lower(), folder.parent.name.lower())
    published = ("autoregressive_checkpoint", "bidirectional_checkpoint", "wan_causal_ode")
    return any("causvid" in each for each in names) or names[1].startswith(published)


def is_longlive(file: Path) -> bool:
    """Tell whether a file is LongLive's, by its name or by its folder's."""
    name, folder = file.name.lower(), file.resolve().parent
    if "forcing" not in name and "longlive" not in name:
        name = (folder.parent if folder.name == "transformer" else folder).name.lower()
    return "longlive" in name


def lacking(folder: Path) -> tuple[str, ...]:
    """Return which parts besides the transformer a folder lacks."""
    vae = (folder / "vae").is_dir() or (folder / ORIGINAL_VAE).is_file()
    texts = [f"{part}/" for part in TEXT_PARTS if not (folder / part).is_dir()]
    return (*(() if vae else (f"a VAE (vae/ or {ORIGINAL_VAE})",)), *texts)


def config_of(
    where: Path, folders: Sequence[Path], stored: Mapping[str, StoredTensor]
) -> WanConfig:
    """Return the sizes of a checkpoint: from the tensors' shapes, and the heads from `config.json`.

    Args:
        where: its name in errors.
        folders: where a `config.json` may be, best first.
        stored: its tensors.

    Raises:
        CheckpointError: it is not a Wan transformer, or file and tensors contradict each other.
    """
    if "blocks.0.cross_attn.k_img.weight" in stored:
        raise CheckpointError(f"{where} is an image-to-video model, which is not supported")
    implied = _implied(where, stored)
    said = read_public_config(folders, implied)
    if implied.in_dim != implied.out_dim:
        raise CheckpointError(
            f"{where} takes {implied.in_dim} channels and makes {implied.out_dim}: models with a "
            "picture or a mask as input besides the latents are not supported"
        )
    if said is None and implied.dim % HEAD_SIZE:
        raise CheckpointError(
            f"{where} needs a config.json with the number of heads: {implied.dim} channels are not "
            f"a multiple of {HEAD_SIZE}"
        )
    return said or implied


def _implied(where: Path, stored: Mapping[str, StoredTensor]) -> WanConfig:
    try:
        dim, in_dim, _, patch, _ = stored[FIRST_WEIGHT].shape
        _, text_dim = stored["text_embedding.0.weight"].shape
        _, freq_dim = stored["time_embedding.0.weight"].shape
        ffn_dim, _ = stored["blocks.0.ffn.0.weight"].shape
        out = stored["head.head.weight"].shape[0]
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{where} is not a Wan transformer: it has no {error}") from error
    layers = {name.split(".")[1] for name in stored if name.startswith("blocks.")}
    return WanConfig(
        dim=dim,
        ffn_dim=ffn_dim,
        num_heads=max(1, dim // HEAD_SIZE),
        num_layers=len(layers),
        in_dim=in_dim,
        out_dim=out // patch**2,
        text_dim=text_dim,
        freq_dim=freq_dim,
        patch=patch,
    )
