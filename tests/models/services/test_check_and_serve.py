"""`reverie models check` and the start of a worker look at the same things, and say the same."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from diffusers.models.autoencoders.autoencoder_kl_wan import AutoencoderKLWan
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tiny_pocket import tiny_weights
from transformers import T5Config, UMT5Config, UMT5EncoderModel
from wan_folders import original, weights, write_rest

from reverie.cli import main
from reverie.gpu_pool import ModelUnavailableError, Pool, PoolOptions
from reverie.models.causal_lm.checkpoint.loading import random_model
from reverie.models.diamond.config import ATARI
from reverie.models.diamond.network.denoiser import Denoiser

POINTER = Path(__file__).parent.parent.parent / "inputs" / "git_lfs_pointer.txt"
PAGE = b"<!DOCTYPE html>\n<html><body>Please log in to download</body></html>\n"
ADVICE = ("Traceback", "weights_only", "trust_remote_code", "please pass", "raise an issue")
"""What an error about a broken file must not contain."""

WAN_VAE = "vae/diffusion_pytorch_model.safetensors"
WAN_TEXT = "text_encoder/model.safetensors"
WAN_TRANSFORMER = "diffusion_pytorch_model.safetensors"
SHARD = "-00001-of-00001"

Spoil = Callable[[Path], None]


def wan(folder: Path) -> None:
    original(folder)
    write_rest(folder)


def causal_lm(folder: Path) -> None:
    model, tokenizer = random_model()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def diamond(folder: Path) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(1)
        world = Denoiser(replace(ATARI.world, actions=4))
    held = {f"denoiser.{name}": value for name, value in world.state_dict().items()}
    torch.save(held, folder / "Breakout.pt")
    Image.new("RGB", (160, 210), (0, 90, 0)).save(folder / "start.png")


def oasis(folder: Path) -> None:
    """Write one that does not fit: the public sizes are too large for a test."""
    save_file({"x": torch.zeros(1)}, folder / "oasis500m.safetensors")
    save_file({"decoder.0.norm1.weight": torch.zeros(1)}, folder / "vit-l-20.safetensors")
    Image.new("RGB", (64, 36)).save(folder / "start.png")


def pocket(folder: Path) -> None:
    shutil.copy(tiny_weights(), folder / "pocket.safetensors")


FAMILIES = {
    "wan": wan,
    "causal_lm": causal_lm,
    "diamond": diamond,
    "oasis": oasis,
    "pocket": pocket,
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a folder of each family."""
    made = {}
    for name, write in FAMILIES.items():
        made[name] = tmp_path_factory.mktemp(name)
        write(made[name])
    return made


async def served(model: str, **settings: object) -> str:
    """Start a worker with a checkpoint; return why it does not, empty when it does."""
    chosen = {"name": model, "sessions": 1, "device": "cpu", **settings}
    pool = Pool(PoolOptions.model_validate({"mode": "inline", "models": [chosen]}))
    try:
        await pool.start()
    except ModelUnavailableError as error:
        return str(error)
    finally:
        await pool.close()
    return ""


def holding(name: str, content: bytes) -> Spoil:
    def write(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return write


def pointer(name: str) -> Spoil:
    return holding(name, POINTER.read_bytes())


def page(name: str) -> Spoil:
    return holding(name, PAGE)


def empty(name: str) -> Spoil:
    return holding(name, b"")


def half(name: str) -> Spoil:
    def cut(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return cut


def without(name: str, tensor: str) -> Spoil:
    def cut(folder: Path) -> None:
        held = load_file(folder / name)
        del held[tensor]
        save_file(held, folder / name, {"format": "pt"})

    return cut


def said(name: str, **fields: object) -> Spoil:
    def change(folder: Path) -> None:
        values = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(values | fields))

    return change


def wide_vae(folder: Path) -> None:
    zeros = {"latents_mean": [0.0] * 48, "latents_std": [1.0] * 48}
    vae = AutoencoderKLWan(base_dim=4, z_dim=48, num_res_blocks=1, **zeros)
    shutil.rmtree(folder / "vae")
    vae.save_pretrained(folder / "vae")


def write_text(folder: Path, words: int, width: int) -> None:
    sizes = UMT5Config(vocab_size=words, d_model=width, d_ff=16, d_kv=8, num_heads=2, num_layers=1)
    UMT5EncoderModel(sizes).save_pretrained(folder / "text_encoder")


def wide_text(folder: Path) -> None:
    write_text(folder, 7, 24)


def other_text(folder: Path) -> None:
    T5Config(d_model=16).save_pretrained(folder / "text_encoder")


def few_words(folder: Path) -> None:
    write_text(folder, 3, 16)


def pictures_too(folder: Path) -> None:
    held = weights()
    held["patch_embedding.weight"] = torch.zeros(128, 36, 1, 2, 2)
    save_file(held, folder / WAN_TRANSFORMER)


def no_vae(folder: Path) -> None:
    shutil.rmtree(folder / "vae")
    torch.save({"fc.weight": torch.zeros(2, 2)}, folder / "Wan2.1_VAE.pth")


def more_than_tensors(folder: Path) -> None:
    shutil.rmtree(folder / "vae")
    torch.save({"encoder": Path("x")}, folder / "Wan2.1_VAE.pth")


def other_file(name: str, source: str) -> Spoil:
    def copy(folder: Path) -> None:
        shutil.copyfile(folder / source, folder / name)

    return copy


def settings_alone(folder: Path) -> None:
    (folder / "tokenizer" / "tokenizer.json").unlink()


def two_agents(folder: Path) -> None:
    shutil.copyfile(folder / "Breakout.pt", folder / "Pong.pt")


def second(name: str, ending: str = "-fp16") -> Spoil:
    path = Path(name)
    return other_file(str(path.with_name(f"{path.stem}{ending}{path.suffix}")), name)


def shards_lost(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    held = {"weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(held))


def another_model(folder: Path) -> None:
    said("config.json", num_hidden_layers=1)(folder)


BAD: dict[str, tuple[str, Spoil, str]] = {
    # Wan: each part in turn is none.
    "wan vae pointer": ("wan", pointer(WAN_VAE), f"{WAN_VAE} is a git-lfs pointer"),
    "wan vae page": ("wan", page(WAN_VAE), f"{WAN_VAE} is a web page"),
    "wan vae half": ("wan", half(WAN_VAE), f"{WAN_VAE} is incomplete"),
    "wan vae empty": ("wan", empty(WAN_VAE), f"{WAN_VAE} is not a supported checkpoint"),
    "wan vae lacks": (
        "wan",
        without(WAN_VAE, "decoder.conv_in.bias"),
        f"tensors missing from the checkpoint (1): decoder.conv_in.bias ({WAN_VAE})",
    ),
    "wan vae wide": ("wan", wide_vae, "its latents have 48 channels, those of the transformer 16"),
    "wan vae none": ("wan", no_vae, "Wan2.1_VAE.pth is not a VAE of Wan"),
    "wan vae code": ("wan", more_than_tensors, "Wan2.1_VAE.pth: it contains more than tensors"),
    "wan vae class": (
        "wan",
        said("vae/config.json", _class_name="AutoencoderKL"),
        "vae/config.json: _class_name must be AutoencoderKLWan, not 'AutoencoderKL'",
    ),
    "wan vae 2.2": ("wan", said("vae/config.json", is_residual=True), "the VAE of Wan 2.2"),
    "wan vae sizes": (
        "wan",
        said("vae/config.json", dim_mult=[1, 2]),
        "must reduce 8 times in space",
    ),
    "wan vae config pointer": ("wan", pointer("vae/config.json"), "config.json is a git-lfs"),
    "wan vae is text": ("wan", other_file(WAN_VAE, WAN_TEXT), f"{WAN_VAE} is not a VAE of Wan"),
    "wan text pointer": ("wan", pointer(WAN_TEXT), f"{WAN_TEXT} is a git-lfs pointer"),
    "wan text page": ("wan", page(WAN_TEXT), f"{WAN_TEXT} is a web page"),
    "wan text half": ("wan", half(WAN_TEXT), f"{WAN_TEXT} is incomplete"),
    "wan text lacks": (
        "wan",
        without(WAN_TEXT, "encoder.final_layer_norm.weight"),
        f"tensors missing from the checkpoint (1): encoder.final_layer_norm.weight ({WAN_TEXT})",
    ),
    "wan text wide": ("wan", wide_text, "its rows have 24 numbers, and the transformer reads"),
    "wan text other": (
        "wan",
        other_text,
        "model_type of the text encoder must be 'umt5', not 't5'",
    ),
    "wan text is vae": ("wan", other_file(WAN_TEXT, WAN_VAE), f"{WAN_TEXT} is not a umT5 encoder"),
    "wan words": ("wan", few_words, "it has 7 tokens, and the model has 3"),
    "wan tokenizer pointer": (
        "wan",
        pointer("tokenizer/tokenizer.json"),
        "tokenizer/tokenizer.json is a git-lfs pointer",
    ),
    "wan tokenizer half": (
        "wan",
        half("tokenizer/tokenizer.json"),
        "tokenizer/tokenizer.json is incomplete",
    ),
    "wan tokenizer settings": ("wan", settings_alone, "is missing a tokenizer (tokenizer.json"),
    "wan transformer pointer": ("wan", pointer(WAN_TRANSFORMER), "is a git-lfs pointer"),
    "wan transformer page": ("wan", page(WAN_TRANSFORMER), "is a web page"),
    "wan transformer half": ("wan", half(WAN_TRANSFORMER), "is incomplete"),
    "wan transformer lacks": (
        "wan",
        without(WAN_TRANSFORMER, "blocks.1.ffn.2.bias"),
        f"tensors missing from the checkpoint (1): blocks.1.ffn.2.bias ({WAN_TRANSFORMER})",
    ),
    "wan transformer i2v": ("wan", pictures_too, "takes 36 channels and makes 16"),
    "wan transformer is vae": (
        "wan",
        other_file(WAN_TRANSFORMER, WAN_VAE),
        f"{WAN_TRANSFORMER} is not a Wan transformer",
    ),
    "wan transformer twice": ("wan", second(WAN_TRANSFORMER, SHARD), "more than once"),
    "wan vae twice": ("wan", second(WAN_VAE, SHARD), "more than once"),
    "wan causal page": ("wan", page("causal.json"), "causal.json is a web page"),
    # A language model.
    "lm pointer": ("causal_lm", pointer("model.safetensors"), "is a git-lfs pointer"),
    "lm page": ("causal_lm", page("model.safetensors"), "is a web page"),
    "lm half": ("causal_lm", half("model.safetensors"), "is incomplete"),
    "lm lacks": (
        "causal_lm",
        without("model.safetensors", "model.norm.weight"),
        "tensors missing from the checkpoint (1): model.norm.weight (model.safetensors)",
    ),
    "lm shards": ("causal_lm", shards_lost, "is missing model-00001-of-00002.safetensors"),
    "lm other sizes": ("causal_lm", another_model, "model does not have"),
    "lm tokenizer pointer": ("causal_lm", pointer("tokenizer.json"), "is a git-lfs pointer"),
    "lm tokenizer half": ("causal_lm", half("tokenizer.json"), "tokenizer.json is incomplete"),
    "lm config pointer": ("causal_lm", pointer("config.json"), "config.json is a git-lfs pointer"),
    "lm words": ("causal_lm", said("config.json", vocab_size=9), "the model has 9"),
    # DIAMOND.
    "diamond pointer": ("diamond", pointer("Breakout.pt"), "Breakout.pt is a git-lfs pointer"),
    "diamond page": ("diamond", page("Breakout.pt"), "Breakout.pt is a web page"),
    "diamond half": ("diamond", half("Breakout.pt"), "Breakout.pt is incomplete"),
    "diamond two": (
        "diamond",
        two_agents,
        "contains 2 agents (Breakout.pt, Pong.pt): set checkpoint to one of the files",
    ),
    "diamond picture pointer": ("diamond", pointer("start.png"), "start.png is a git-lfs pointer"),
    "diamond picture half": ("diamond", half("start.png"), "cannot read"),
    # Oasis.
    "oasis pointer": ("oasis", pointer("oasis500m.safetensors"), "is a git-lfs pointer"),
    "oasis page": ("oasis", page("oasis500m.safetensors"), "is a web page"),
    "oasis vae pointer": ("oasis", pointer("vit-l-20.safetensors"), "is a git-lfs pointer"),
    "oasis vae half": ("oasis", half("vit-l-20.safetensors"), "is incomplete"),
    "oasis vae none": (
        "oasis",
        other_file("vit-l-20.safetensors", "oasis500m.safetensors"),
        "vit-l-20.safetensors is not a VAE of Oasis",
    ),
    "oasis two": ("oasis", second("oasis500m.safetensors"), "contains 2 transformers"),
    "oasis picture page": ("oasis", page("start.png"), "start.png is a web page"),
    # Pocket, which is one file.
    "pocket pointer": ("pocket", pointer("pocket.safetensors"), "is a git-lfs pointer"),
    "pocket page": ("pocket", page("pocket.safetensors"), "is a web page"),
    "pocket half": ("pocket", half("pocket.safetensors"), "is incomplete"),
    "pocket lacks": (
        "pocket",
        lambda folder: pocket_without(folder / "pocket.safetensors"),
        "missing from the checkpoint",
    ),
}


def pocket_without(path: Path) -> None:
    with safe_open(path, "pt") as file:
        about = file.metadata()
    held = load_file(path)
    del held[next(name for name in sorted(held) if name.startswith("codec."))]
    save_file(held, path, about)


def place_of(family: str, folder: Path) -> Path:
    return folder / "pocket.safetensors" if family == "pocket" else folder


def told(capsys: pytest.CaptureFixture[str]) -> str:
    both = capsys.readouterr()
    return both.out + both.err


@pytest.mark.parametrize("case", BAD)
async def test_a_bad_part_is_refused_by_both_in_the_same_words(
    case: str, folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    family, spoil, words = BAD[case]
    folder = tmp_path / "folder"
    shutil.copytree(folders[family], folder)
    spoil(folder)
    place = str(place_of(family, folder))
    status = main(["models", "check", "--model", family, place])
    checked = told(capsys)
    refused = await served(family, checkpoint=place)
    assert (status, bool(refused)) == (1, True)
    assert words in checked
    assert words in refused
    assert not [advice for advice in ADVICE if advice in checked + refused]


@pytest.mark.parametrize("family", ["wan", "causal_lm", "diamond", "pocket"])
async def test_what_check_lets_through_is_served(
    family: str, folders: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(place_of(family, folders[family]))
    assert main(["models", "check", place]) == 0
    assert capsys.readouterr().out.startswith(f"{family}, ")
    assert await served(family, checkpoint=place) == ""
