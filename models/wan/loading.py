"""From a checkpoint's name to networks on a device."""

from dataclasses import dataclass

import torch
from diffusers.models.autoencoders.autoencoder_kl_wan import AutoencoderKLWan

from reverie.models.instance import LoadOptions
from reverie.models.wan.config import CausalConfig, WanConfig
from reverie.models.wan.noise import SeededNoise
from reverie.models.wan.parts import WanParts
from reverie.models.wan.text import HashedText
from reverie.models.wan.transformer import WanTransformer
from reverie.models.wan.vae import StreamingVae

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


def load_parts(options: LoadOptions) -> Loaded:
    """Load the parts that `options.checkpoint` names."""
    return random_parts()


def random_parts(seed: int = 0) -> Loaded:
    """Make a tiny causal Wan that has learnt nothing; the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        transformer = WanTransformer(TINY).eval()
        vae = AutoencoderKLWan(base_dim=4, z_dim=16, num_res_blocks=1).eval()
    parts = WanParts(
        transformer=transformer,
        decoder=StreamingVae(vae),
        text=HashedText(TINY.text_len, TINY.text_dim, torch.device("cpu"), torch.float32),
        causal=TINY_CAUSAL,
        noise=SeededNoise(),
        grid=TINY_GRID,
    )
    return Loaded(parts, f"random-{seed}")
