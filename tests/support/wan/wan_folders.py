"""Folders as public checkpoints of Wan are laid out, tiny and random."""

import json
from pathlib import Path
from typing import Any

import torch
from diffusers.models.autoencoders.autoencoder_kl_wan import AutoencoderKLWan
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, UMT5Config, UMT5EncoderModel

from reverie.models.wan.config import WanConfig
from reverie.models.wan.network.transformer import WanTransformer

SIZES = WanConfig(
    dim=128, ffn_dim=32, num_heads=1, num_layers=2, text_len=512, text_dim=16, freq_dim=32
)
WORDS = ("<pad>", "</s>", "<unk>", "a", "lake", "at", "night")


def weights() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(3)
    model = WanTransformer(SIZES)
    return {
        name: torch.randn(value.shape, generator=random) * 0.1
        for name, value in model.state_dict().items()
    }


def write_rest(folder: Path) -> None:
    """Write VAE, text encoder, tokenizer and sizes beside a transformer."""
    AutoencoderKLWan(base_dim=4, z_dim=16, num_res_blocks=1).save_pretrained(folder / "vae")
    write_text(folder)
    causal = {"height": 32, "width": 48, "local": 6, "levels": [1000, 500]}
    (folder / "causal.json").write_text(json.dumps(causal))


def write_text(folder: Path, width: int = 16) -> None:
    """Write a text encoder whose rows have `width` numbers, and its tokenizer."""
    text = UMT5Config(
        vocab_size=len(WORDS), d_model=width, d_ff=16, d_kv=8, num_heads=2, num_layers=1
    )
    UMT5EncoderModel(text).save_pretrained(folder / "text_encoder")
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    make_tokenizer: Any = PreTrainedTokenizerFast
    make_tokenizer(
        tokenizer_object=words, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder / "tokenizer")


def self_forcing(folder: Path, wrapped: str = "") -> None:
    held = {f"model.{wrapped}{name}": value for name, value in weights().items()}
    torch.save({"generator_ema": held, "generator": {}}, folder / "self_forcing_dmd.pt")


def original(folder: Path) -> None:
    save_file(weights(), folder / "diffusion_pytorch_model.safetensors")
    public = {"model_type": "t2v", "dim": 128, "ffn_dim": 32, "num_heads": 1, "num_layers": 2}
    public |= {"text_len": 512, "text_dim": 16, "freq_dim": 32, "patch_size": [1, 2, 2]}
    (folder / "config.json").write_text(json.dumps(public))


def longlive(folder: Path) -> None:
    held = {f"model.{name}": value for name, value in weights().items()}
    torch.save({"generator": held}, folder / "longlive_base.pt")
