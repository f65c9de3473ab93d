"""Loads a checkpoint's networks onto a device, after `contents.py` has found no fault."""

import logging
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import torch
from diffusers.models.autoencoders.autoencoder_kl_wan import AutoencoderKLWan

from reverie.models.contract.instance import AdapterOption, LoadOptions
from reverie.models.services.checkpoints import fill
from reverie.models.services.placement import device_of, half_on_cuda, precision_of
from reverie.models.services.weight_files import CheckpointPaths
from reverie.models.wan.checkpoint import loras
from reverie.models.wan.checkpoint.contents import TransformerContents, check_checkpoint, check_more
from reverie.models.wan.checkpoint.text_files import load_text
from reverie.models.wan.checkpoint.transformer_files import used
from reverie.models.wan.checkpoint.vae_files import load_vae
from reverie.models.wan.components import WanComponents
from reverie.models.wan.config import RANDOM, CausalConfig, WanConfig
from reverie.models.wan.network.fast_decoder import load_fast_decoder, random_fast_decoder
from reverie.models.wan.network.text_encoder import HashTextEncoder, Umt5TextEncoder
from reverie.models.wan.network.transformer import WanTransformer
from reverie.models.wan.network.vae import StreamingVae
from reverie.models.wan.noise import SeededNoise

Part = TypeVar("Part", bound=torch.nn.Module)

_log = logging.getLogger(__name__)

TINY = WanConfig(
    dim=48, ffn_dim=64, num_heads=2, num_layers=2, in_dim=16, out_dim=16, text_len=16, text_dim=32
)
TINY_CAUSAL = CausalConfig(local=9, sink=3, levels=(1000, 500), recache=True)
TINY_GRID = (6, 6)


@dataclass(frozen=True, slots=True)
class LoadedWan:
    """The components, and a version that changes when any weight does."""

    components: WanComponents
    version: str


def load_components(options: LoadOptions) -> LoadedWan:
    """Load the components that `options.checkpoint` names.

    Raises:
        CheckpointError: something is missing, or does not fit.
        OptionError: the device or precision is not supported.
    """
    device = device_of(options)
    if options.checkpoint == RANDOM:
        return random_components(adapters=options.adapters, fast=bool(options.decoder))
    places = CheckpointPaths.of(options.checkpoint or "", options.parts)
    dtype = precision_of(options, ("float32", "bfloat16"), half_on_cuda(device), "wan")
    found = check_checkpoint(places)
    check_more(found, options).require_fit()
    assert found.transformer is not None, "a checkpoint that fits has all parts"
    assert found.vae is not None, "likewise"
    transformer = _filled(found.transformer, device, dtype)
    _log.info("%s", "; ".join(found.report.full_lines()))
    vae = StreamingVae(_placed(load_vae(found.vae, device, dtype), device, dtype))
    place = Path(options.decoder_path or places.parts)
    fast = load_fast_decoder(place, device, dtype) if options.decoder else None
    read = load_text(places.parts)
    text = Umt5TextEncoder(
        _placed(read.encoder, device, dtype), read.tokenizer, transformer.config.text_len
    )
    adapters = (*loras.bundled(found.transformer.files), *options.adapters)
    fitted = loras.fit(adapters, transformer, text.encoder, found.transformer.stored)
    causal, grid = found.causal
    components = WanComponents(
        transformer=transformer,
        decoder=fast or vae,
        encoder=vae,
        text=text,
        causal=causal,
        noise=SeededNoise(),
        grid=grid,
        adapters=fitted.selectable,
    )
    version = version_of(*found.files)
    if fast is not None:
        version += f"+{options.decoder}:{version_of(place)}"
    return LoadedWan(components, fitted.version(version))


def version_of(*places: Path) -> str:
    """Return a version for a checkpoint's content, from its files' names, sizes and times.

    Args:
        places: files, and folders with everything in them.
    """
    digest = blake2b(digest_size=8)
    for path in sorted(used(places)):
        about = path.stat()
        digest.update(f"{path.name}/{about.st_size}/{about.st_mtime_ns}".encode())
    return digest.hexdigest()


def random_components(
    seed: int = 0, adapters: tuple[AdapterOption, ...] = (), *, fast: bool = False
) -> LoadedWan:
    """Make a tiny causal Wan with random weights; the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        transformer = WanTransformer(TINY).eval().requires_grad_(False)
        vae = AutoencoderKLWan(base_dim=4, z_dim=16, num_res_blocks=1).eval()
    streaming = StreamingVae(vae.requires_grad_(False))
    fitted = loras.fit(adapters, transformer, None)
    components = WanComponents(
        transformer=transformer,
        decoder=random_fast_decoder(seed) if fast else streaming,
        encoder=streaming,
        text=HashTextEncoder(TINY.text_len, TINY.text_dim, torch.device("cpu"), torch.float32),
        causal=TINY_CAUSAL,
        noise=SeededNoise(),
        grid=TINY_GRID,
        adapters=fitted.selectable,
    )
    return LoadedWan(components, fitted.version(f"random-{seed}{'+fast' if fast else ''}"))


def _filled(found: TransformerContents, device: torch.device, dtype: torch.dtype) -> WanTransformer:
    with torch.device("meta"):
        transformer = WanTransformer(found.config)
    fill(transformer, found.stored, device, dtype)
    return transformer


def _placed(part: Part, device: torch.device, dtype: torch.dtype) -> Part:
    """Move a module to its device for inference; the libraries' `to` and `eval` are untyped."""
    torch.nn.Module.to(part, device=device, dtype=dtype)
    torch.nn.Module.train(part, mode=False)
    return part.requires_grad_(False)
