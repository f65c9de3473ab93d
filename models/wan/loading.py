"""From a checkpoint's name to networks on a device.

A folder holds the transformer in one of the public layouts (`layouts.py`), the VAE (`vae/` as
diffusers has it, or the original `Wan2.1_VAE.pth`), the text encoder (`text_encoder/` and
`tokenizer/` as transformers has them), and may hold `causal.json` with fields of `CausalConfig` and
`"height"` and `"width"` in pixels. LongLive's `lora.pt` beside its base is part of the model.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar, cast

import torch
from diffusers.loaders.single_file_utils import convert_wan_vae_to_diffusers
from diffusers.models.autoencoders.autoencoder_kl_wan import AutoencoderKLWan
from transformers import AutoTokenizer, UMT5EncoderModel

from reverie.models.checkpoints import (
    CheckpointReport,
    StoredTensor,
    fill,
    inspect,
    read_config,
)
from reverie.models.errors import CheckpointError
from reverie.models.instance import AdapterOption, LoadOptions
from reverie.models.placement import device_of, half_on_cuda, precision_of
from reverie.models.wan import loras
from reverie.models.wan.config import LONGLIVE, SELF_FORCING, CausalConfig, WanConfig
from reverie.models.wan.fast_decoder import load_fast_decoder, random_fast_decoder
from reverie.models.wan.layouts import ORIGINAL_VAE, TEXT_PARTS, config_of, find_layout, lacking
from reverie.models.wan.noise import SeededNoise
from reverie.models.wan.parts import WanParts
from reverie.models.wan.spec import CELL_PX, GRID, RANDOM
from reverie.models.wan.text import HashedText, Umt5Text
from reverie.models.wan.transformer import WanTransformer
from reverie.models.wan.vae import StreamingVae

Part = TypeVar("Part", bound=torch.nn.Module)

TINY = WanConfig(
    dim=48, ffn_dim=64, num_heads=2, num_layers=2, in_dim=16, out_dim=16, text_len=16, text_dim=32
)
TINY_CAUSAL = CausalConfig(local=9, sink=3, levels=(1000, 500), recache=True)
TINY_GRID = (6, 6)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Parts, and what changes when any weight does."""

    parts: WanParts
    version: str


@dataclass(frozen=True, slots=True)
class FoundTransformer:
    """A transformer's tensors, compared with the model that they imply and not read yet."""

    config: WanConfig
    stored: dict[str, StoredTensor]
    report: CheckpointReport


def load_parts(options: LoadOptions) -> Loaded:
    """Load the parts that `options.checkpoint` names.

    Raises:
        CheckpointError: something is missing, or does not fit.
        OptionError: there is no such device.
    """
    device = device_of(options)
    if options.checkpoint == RANDOM:
        return random_parts(adapters=options.adapters, fast=bool(options.decoder))
    folder = Path(options.checkpoint or "")
    dtype = precision_of(options, ("float32", "bfloat16"), half_on_cuda(device), "wan")
    found = find_transformer(folder)
    found.report.require_fit()
    with torch.device("meta"):
        transformer = WanTransformer(found.config)
    fill(transformer, found.stored, device, dtype)
    causal, grid = causal_of(folder, found.report.layout)
    vae = StreamingVae(_placed(load_vae(folder), device, dtype))
    place = Path(options.decoder_path or folder)
    fast = load_fast_decoder(place, device, dtype) if options.decoder else None
    text = load_text(folder, found.config.text_len, device, dtype)
    fitted = loras.fit(
        (*loras.brought_along(folder), *options.adapters), transformer, text.encoder, found.stored
    )
    parts = WanParts(
        transformer=transformer,
        decoder=fast or vae,
        encoder=vae,
        text=text,
        causal=causal,
        noise=SeededNoise(),
        grid=grid,
        adapters=fitted.beside,
    )
    version = version_of(folder)
    if fast is not None:
        version += f"+{options.decoder}:{version_of(place)}"
    return Loaded(parts, fitted.version(version))


def find_transformer(folder: Path) -> FoundTransformer:
    """Look at a checkpoint's headers and compare them with the model that they imply.

    Raises:
        CheckpointError: there is no transformer in a known layout.
    """
    layout, files = find_layout(folder)
    stored = layout.tensors(files)
    config = config_of(folder, stored)
    with torch.device("meta"):
        model = WanTransformer(config)
    return FoundTransformer(config, stored, inspect(layout.layout, stored, model))


def causal_of(folder: Path, layout: str) -> tuple[CausalConfig, tuple[int, int]]:
    """Return how a checkpoint makes video: what `causal.json` says over what its name implies.

    Raises:
        CheckpointError: the file names unknown fields, or sizes that cannot be.
    """
    path = folder / "causal.json"
    values = read_config(path) if path.is_file() else {}
    rows, columns = GRID
    height, width = values.pop("height", rows * CELL_PX), values.pop("width", columns * CELL_PX)
    long = any("longlive" in file.name.lower() for file in _siblings(folder))
    start = LONGLIVE if long else SELF_FORCING
    known = {field.name: getattr(start, field.name) for field in fields(CausalConfig)}
    if unknown := values.keys() - known.keys():
        raise CheckpointError(f"{path} has unknown fields: {', '.join(sorted(unknown))}")
    if isinstance(values.get("levels"), list):
        values["levels"] = tuple(values["levels"])
    try:
        causal = CausalConfig(**{**known, **values})
        for name, value in (("height", height), ("width", width)):
            if type(value) is not int:
                raise ValueError(f"{name} is {value!r}, and is a whole number")
        if height % (2 * CELL_PX) or width % (2 * CELL_PX) or min(height, width) < 1:
            raise ValueError(f"{width}x{height} pixels: both are multiples of {2 * CELL_PX}")
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    return causal, (height // CELL_PX, width // CELL_PX)


def check_folder(folder: Path) -> FoundTransformer:
    """Look at a transformer, and at what a folder needs beside it to be served.

    Raises:
        CheckpointError: there is no transformer in a known layout, or `causal.json` cannot be.
    """
    found = find_transformer(folder)
    if folder.is_file():
        return found
    causal_of(folder, found.report.layout)
    return replace(found, report=replace(found.report, lacking=lacking(folder)))


def load_vae(folder: Path) -> AutoencoderKLWan:
    """Load the VAE of a folder.

    Raises:
        CheckpointError: there is none, or it does not fit.
    """
    ported, original = folder / "vae", folder / ORIGINAL_VAE
    try:
        if ported.is_dir():
            loaded = AutoencoderKLWan.from_pretrained(ported, local_files_only=True)
            return cast(AutoencoderKLWan, loaded)
        if original.is_file():
            vae = AutoencoderKLWan()
            stored = torch.load(original, map_location="cpu", weights_only=True)
            renamed = cast(Callable[[Any], Any], convert_wan_vae_to_diffusers)(stored)
            vae.load_state_dict(renamed)
            return cast(AutoencoderKLWan, vae)
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        raise CheckpointError(f"the VAE in {folder} does not fit: {error}") from error
    raise CheckpointError(f"{folder} holds no VAE: neither vae/ nor {original.name}")


def load_text(folder: Path, length: int, device: torch.device, dtype: torch.dtype) -> Umt5Text:
    """Load the text encoder and its tokenizer.

    Raises:
        CheckpointError: one of them is missing or cannot be read.
    """
    encoder, tokenizer = (folder / part for part in TEXT_PARTS)
    for part in (encoder, tokenizer):
        if not part.is_dir():
            raise CheckpointError(f"{folder} holds no {part.name}/")
    try:
        loaded = UMT5EncoderModel.from_pretrained(encoder, local_files_only=True)
        reader = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True)
        return Umt5Text(_placed(loaded, device, dtype), reader, length)
    except (OSError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"the text encoder in {folder} cannot be read: {error}") from error


def version_of(folder: Path) -> str:
    """Return a name for a checkpoint's content, from its files' names, sizes and times."""
    digest = blake2b(digest_size=8)
    for path in sorted(_siblings(folder)):
        about = path.stat()
        digest.update(f"{path.name}/{about.st_size}/{about.st_mtime_ns}".encode())
    return digest.hexdigest()


def random_parts(
    seed: int = 0, adapters: tuple[AdapterOption, ...] = (), *, fast: bool = False
) -> Loaded:
    """Make a tiny causal Wan that has learnt nothing; the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        transformer = WanTransformer(TINY).eval().requires_grad_(False)
        vae = AutoencoderKLWan(base_dim=4, z_dim=16, num_res_blocks=1).eval()
    streaming = StreamingVae(vae.requires_grad_(False))
    fitted = loras.fit(adapters, transformer, None)
    parts = WanParts(
        transformer=transformer,
        decoder=random_fast_decoder(seed) if fast else streaming,
        encoder=streaming,
        text=HashedText(TINY.text_len, TINY.text_dim, torch.device("cpu"), torch.float32),
        causal=TINY_CAUSAL,
        noise=SeededNoise(),
        grid=TINY_GRID,
        adapters=fitted.beside,
    )
    return Loaded(parts, fitted.version(f"random-{seed}{'+fast' if fast else ''}"))


def _placed(part: Part, device: torch.device, dtype: torch.dtype) -> Part:
    """Move a module and let it serve; the libraries' own `to` and `eval` are not typed."""
    torch.nn.Module.to(part, device=device, dtype=dtype)
    torch.nn.Module.train(part, mode=False)
    return part.requires_grad_(False)


def _siblings(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    return [path for path in folder.rglob("*") if path.is_file()]
