"""The streaming VAE, loaded as a checkpoint's part, against the whole one of public code."""

import shutil
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from diffusers.loaders.single_file_utils import convert_wan_vae_to_diffusers
from diffusers.models.autoencoders.autoencoder_kl_wan import AutoencoderKLWan
from recorded_wan import GOLDENS, metadata, write_vae
from safetensors.torch import load_file
from torch import Tensor
from wan_folders import self_forcing, write_rest

from reverie.models.contract.instance import LoadOptions
from reverie.models.wan.checkpoint.vae_files import find_vae, load_vae
from reverie.models.wan.network.features import FeatureCache
from reverie.models.wan.network.vae import StreamingVae, grouped
from reverie.models.wan.spec import Wan

ORIGINAL = GOLDENS / "wan_vae" / "original.safetensors"
TOLERANCE = 1e-5
DEEP = 2e-5
"""With two residual blocks a level, as published, sums have a longer way to drift."""


def loaded_from(folder: Path) -> StreamingVae:
    """Load the VAE of a folder as a model's part is loaded."""
    found = find_vae(folder)
    assert found is not None
    found.report.require_fit()
    return StreamingVae(load_vae(found, torch.device("cpu"), torch.float32))


@pytest.fixture(scope="module")
def numbers() -> dict[str, Tensor]:
    return load_file(GOLDENS / "wan_vae" / "io.safetensors")


@pytest.fixture(scope="module")
def vae(tmp_path_factory: pytest.TempPathFactory) -> StreamingVae:
    folder = tmp_path_factory.mktemp("ported")
    write_vae(folder)
    return loaded_from(folder)


def decoded(
    vae: StreamingVae, latents_ZFhw: Tensor, cache: FeatureCache | None = None
) -> tuple[Tensor, FeatureCache | None]:
    """Return pictures as [3, F, H, W] and the cache after them."""
    pictures = []
    for latent_Zhw in latents_ZFhw.unbind(1):
        made, cache = vae.decode(latent_Zhw[None], cache)
        pictures.append(made[0])
    return torch.cat(pictures).permute(3, 0, 1, 2), cache


def encoded(vae: StreamingVae, pictures_FHWC: Tensor) -> Tensor:
    """Return latents [Z, F, h, w] of a video that is encoded a latent frame at a time."""
    cache: FeatureCache | None = None
    latents = []
    for group in grouped(len(pictures_FHWC)):
        latents_BZhw, cache = vae.encode(pictures_FHWC[None, group], cache)
        latents.append(latents_BZhw[0])
    return torch.stack(latents, dim=1)


def assert_near(made: Tensor, wanted: Tensor, tolerance: float = TOLERANCE) -> None:
    torch.testing.assert_close(made, wanted, atol=tolerance, rtol=0)


class TestDecoding:
    """Latents to pictures."""

    def test_chunks_equal_the_whole(self, vae: StreamingVae, numbers: dict[str, Tensor]) -> None:
        latents = numbers["in.latents"][0]
        first, cache = decoded(vae, latents[:, :3])
        second, _ = decoded(vae, latents[:, 3:], cache)
        assert (first.shape[1], second.shape[1]) == (9, 12)
        assert_near(first, numbers["out.stream_chunk0"][0])
        assert_near(second, numbers["out.stream_chunk1"][0])
        assert_near(torch.cat([first, second], dim=1), numbers["out.decode_full"][0])

    def test_the_carried_features_are_the_reference_features(
        self, vae: StreamingVae, numbers: dict[str, Tensor]
    ) -> None:
        _, cache = decoded(vae, numbers["in.latents"][0, :, :3])
        assert cache is not None
        compared = 0
        for key, wanted in numbers.items():
            if key.startswith("cache_after3."):
                made = cache[int(key.rpartition(".")[2])]
                assert isinstance(made, Tensor)
                assert_near(made, wanted)
                compared += 1
        assert compared == 24

    def test_sessions_do_not_mix(self, vae: StreamingVae, numbers: dict[str, Tensor]) -> None:
        latents = numbers["in.latents"][0]
        mine: list[Tensor] = []
        my_cache: FeatureCache | None = None
        their_cache: FeatureCache | None = None
        for latent_Zhw in latents.unbind(1):
            made, my_cache = vae.decode(latent_Zhw[None], my_cache)
            _, their_cache = vae.decode(latent_Zhw[None].flip(-1), their_cache)
            mine.append(made[0])
        alone, _ = decoded(vae, latents)
        assert torch.equal(torch.cat(mine).permute(3, 0, 1, 2), alone)

    def test_a_cache_that_was_kept_is_not_edited(
        self, vae: StreamingVae, numbers: dict[str, Tensor]
    ) -> None:
        latents = numbers["in.latents"][0]
        _, kept = decoded(vae, latents[:, :3])
        once, _ = decoded(vae, latents[:, 3:], kept)
        again, _ = decoded(vae, latents[:, 3:], kept)
        assert torch.equal(once, again)

    def test_no_cache_begins_a_new_video(
        self, vae: StreamingVae, numbers: dict[str, Tensor]
    ) -> None:
        latents = numbers["in.latents"][0, :, :2]
        first, _ = decoded(vae, latents)
        decoded(vae, latents.flip(-1))
        again, _ = decoded(vae, latents)
        assert torch.equal(first, again)
        assert first.shape[1] == 5


class TestEncoding:
    """Pictures to latents."""

    def test_streamed_encoding_equals_the_whole(
        self, vae: StreamingVae, numbers: dict[str, Tensor]
    ) -> None:
        made = encoded(vae, numbers["in.pixels"][0].permute(1, 2, 3, 0))
        assert_near(made, numbers["out.encode"][0])

    def test_pictures_beyond_the_last_whole_group_are_left(self) -> None:
        assert [(group.start, group.stop) for group in grouped(11)] == [(0, 1), (1, 5), (5, 9)]

    def test_a_wrong_number_of_pictures_is_refused(self, vae: StreamingVae) -> None:
        with pytest.raises(ValueError, match="1 pictures make this latent frame, not 4"):
            vae.encode(torch.zeros(1, 4, 24, 32, 3), None)


def ported(folder: Path, held: dict[str, Tensor]) -> None:
    sizes = metadata(ORIGINAL, "meta")["cfg"]
    whole = AutoencoderKLWan(
        base_dim=sizes["dim"], z_dim=sizes["z_dim"], num_res_blocks=sizes["num_res_blocks"]
    )
    whole.load_state_dict(cast(Any, convert_wan_vae_to_diffusers)(held))
    whole.save_pretrained(folder / "vae")


def as_published(folder: Path, held: dict[str, Tensor]) -> None:
    shutil.rmtree(folder / "vae")
    torch.save(held, folder / "Wan2.1_VAE.pth")


@pytest.fixture(scope="module", params=[ported, as_published])
def original(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> StreamingVae:
    """Load a whole model whose VAE has the weights that Wan's own code was recorded with."""
    folder = tmp_path_factory.mktemp("original")
    self_forcing(folder)
    write_rest(folder)
    first = "weights."
    held = {k.removeprefix(first): v for k, v in load_file(ORIGINAL).items() if first in k}
    request.param(folder, held)
    family = Wan()
    instance = family.load(LoadOptions(device="cpu", checkpoint=str(folder), sessions=1))
    decoder = family._components[instance.name].decoder
    assert isinstance(decoder, StreamingVae)
    return decoder


class TestOriginalCode:
    """Wan 2.1's own VAE, and Self-Forcing's decoding in chunks."""

    def test_decoding_is_its_decoding(self, original: StreamingVae) -> None:
        numbers = load_file(ORIGINAL)
        latents = numbers["in.latents"][0]
        first, cache = decoded(original, latents[:, :2])
        second, _ = decoded(original, latents[:, 2:], cache)
        assert_near(first, numbers["out.cached.0"][0], DEEP)
        assert_near(second, numbers["out.cached.1"][0], DEEP)
        assert_near(torch.cat([first, second], dim=1), numbers["out.decode"][0], DEEP)

    def test_encoding_is_its_encoding(self, original: StreamingVae) -> None:
        numbers = load_file(ORIGINAL)
        made = encoded(original, numbers["in.pixels"][0].permute(1, 2, 3, 0))
        assert_near(made, numbers["out.encode"][0])
