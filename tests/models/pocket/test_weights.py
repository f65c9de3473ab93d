from functools import cache
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from reverie.models.pocket.biomes import Biome, Hour
from reverie.models.pocket.checkpoint import SHIPPED_WEIGHTS, load_pocket
from reverie.models.pocket.first_frame import first_frame
from reverie.models.pocket.nets import PocketNets
from reverie.models.pocket.sampler import noise_levels
from reverie.models.pocket.training.endurance import Endurance, Mark
from reverie.models.pocket.training.evaluate import Evaluation, psnr


@cache
def shipped() -> PocketNets:
    return load_pocket()


def test_the_weights_are_small_enough_to_ship() -> None:
    assert SHIPPED_WEIGHTS.stat().st_size <= 16 * 2**20


def test_the_codec_keeps_unseen_pictures() -> None:
    assert Evaluation(shipped(), (1.0,), worlds=24).codec_psnr() >= 30


def test_waiting_twice_still_shows_the_same_land() -> None:
    evaluation = Evaluation(shipped(), noise_levels(2), worlds=8)
    assert evaluation.still_psnr(frames=2) > 20


def test_the_walker_goes_where_he_is_sent() -> None:
    following, _ = Evaluation(shipped(), noise_levels(2), worlds=16).following(frames=2)
    assert following >= 0.9


def test_a_prompt_recolours_the_world_and_keeps_its_map() -> None:
    found = Endurance(shipped(), noise_levels(2), worlds=16).recolouring(walked=0)
    assert found.coloured >= 0.7
    assert found.kept >= 0.7


@cache
def hundred_frames() -> Mark:
    return Endurance(shipped(), noise_levels(2), worlds=4).marks((100,))[0]


def test_tiles_are_legible_after_a_hundred_frames() -> None:
    assert hundred_frames().tiles >= 0.8


def test_the_walker_is_there_after_a_hundred_frames() -> None:
    assert hundred_frames().walker >= 0.75


def test_the_first_frame_agrees_with_what_is_named() -> None:
    snow = first_frame(3, Biome.SNOW, Hour.NIGHT)
    assert psnr(snow, first_frame(3, Biome.SNOW, Hour.NIGHT)) > 80
    assert psnr(snow, first_frame(3, Biome.DESERT, Hour.NIGHT)) < 30
    assert first_frame(3, None, None).shape == (128, 128, 3)


def test_an_unknown_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    save_file({"a": torch.zeros(1)}, path, {"format": "other/1"})
    with pytest.raises(ValueError, match="other/1"):
        load_pocket(path)


def test_another_precision_plays_too() -> None:
    nets = load_pocket(dtype=torch.float32)
    assert Evaluation(nets, (1.0,), worlds=4).codec_psnr() >= 30
