"""The VAE of a checkpoint, checked and then loaded: as diffusers saves it, or as first published.

It is filled tensor by tensor with those that were compared, so that none is random.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from diffusers.loaders.single_file_utils import convert_wan_vae_to_diffusers
from diffusers.models.autoencoders.autoencoder_kl_wan import AutoencoderKLWan

from reverie.models.contract.errors import CheckpointError
from reverie.models.services.checkpoint_report import CheckpointReport
from reverie.models.services.checkpoints import (
    CheckpointManifest,
    StoredTensor,
    fill,
    inspect,
    read_config,
)
from reverie.models.services.weight_files import files_of
from reverie.models.wan.checkpoint.layouts import ORIGINAL_VAE
from reverie.models.wan.config import CELL_PX
from reverie.models.wan.network.features import GROUP

KIND = "AutoencoderKLWan"
FOLDER = "vae"
_LAYOUT = CheckpointManifest("Wan VAE", (ORIGINAL_VAE,), tops=("state_dict", "model"))
_FIRST, _LAST_LATENTS = "encoder.conv_in.weight", "post_quant_conv.weight"


@dataclass(frozen=True, slots=True)
class VaeContents:
    """A VAE whose tensors are read on demand.

    Attributes:
        config: fields of diffusers' configuration; missing ones have the published values.
    """

    files: tuple[Path, ...]
    config: Mapping[str, Any]
    stored: Mapping[str, StoredTensor]
    report: CheckpointReport


def find_vae(folder: Path) -> VaeContents | None:
    """Read the headers of a folder's VAE; None: there is none.

    Raises:
        CheckpointError: a file cannot be read, or is another kind of VAE.
    """
    ported, original = folder / FOLDER, folder / ORIGINAL_VAE
    if ported.is_dir():
        files = files_of(ported, "diffusion_pytorch_model")
        config = _config(ported / "config.json")
        stored = _LAYOUT.tensors(files)
    elif original.is_file():
        files = (original,)
        stored = _renamed(original, _LAYOUT.tensors(files))
        config = _implied(stored)
    else:
        return None
    report = inspect(_LAYOUT.layout, stored, _bare(ported, config))
    if not report.matched:
        raise CheckpointError(f"{files[0]} is not a VAE of Wan: none of its tensors match")
    return VaeContents(files, config, stored, report.of_part("vae", folder, files))


def latent_channels(found: VaeContents) -> int | None:
    """Return the number of latent channels that the tensors imply; None: they imply none."""
    last = found.stored.get(_LAST_LATENTS)
    return last.shape[0] if last is not None and last.shape else None


def load_vae(found: VaeContents, device: torch.device, dtype: torch.dtype) -> AutoencoderKLWan:
    """Give the VAE its weights; call it after `CheckpointReport.require_fit`."""
    vae = _bare(found.files[0].parent, found.config)
    fill(vae, found.stored, device, dtype)
    return vae


def _config(path: Path) -> dict[str, Any]:
    values = read_config(path)
    kind = values.get("_class_name", KIND)
    if kind != KIND:
        raise CheckpointError(f"{path}: _class_name must be {KIND}, not {kind!r}")
    if values.get("is_residual") or values.get("patch_size") is not None:
        raise CheckpointError(f"{path}: the VAE of Wan 2.2 is not supported")
    return {name: value for name, value in values.items() if not name.startswith("_")}


def _implied(stored: Mapping[str, StoredTensor]) -> dict[str, Any]:
    """Return the width that the tensors imply: the first publication has no configuration."""
    first = stored.get(_FIRST)
    return {"base_dim": first.shape[0]} if first is not None and first.shape else {}


def _bare(folder: Path, config: Mapping[str, Any]) -> AutoencoderKLWan:
    """Make the VAE on device `meta`.

    Raises:
        CheckpointError: its configuration is invalid, or has another scale of pictures.
    """
    make = cast(Callable[[Any], AutoencoderKLWan], AutoencoderKLWan.from_config)
    where = folder / "config.json"
    try:
        with torch.device("meta"):
            vae = make(dict(config))
        channels = {len(vae.config[name]) for name in ("latents_mean", "latents_std")}
        steps = len(vae.config["dim_mult"]) - 1, sum(vae.config["temperal_downsample"])
    except Exception as error:  # the library does not check its configuration
        raise CheckpointError(f"{where}: {type(error).__name__}: {error}") from error
    if channels != {vae.config["z_dim"]}:
        raise CheckpointError(f"{where}: latents_mean and latents_std must have z_dim numbers each")
    if (2 ** steps[0], 2 ** steps[1]) != (CELL_PX, GROUP):
        scale = f"{CELL_PX} times in space and {GROUP} times in time"
        raise CheckpointError(f"{where}: dim_mult and temperal_downsample must reduce {scale}")
    return vae


def _renamed(path: Path, stored: dict[str, StoredTensor]) -> dict[str, StoredTensor]:
    rename = cast(Callable[[Any], dict[str, StoredTensor]], convert_wan_vae_to_diffusers)
    try:
        return rename(stored)
    except (ValueError, IndexError) as error:  # names without the expected numbers
        raise CheckpointError(f"{path} is not a VAE of Wan") from error
