"""The weights that ship. How well they play, `reverie eval pocket` says: see `make check`."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from reverie.evaluation.reading import psnr
from reverie.evaluation.worlds import Stream, draw_worlds, true_states
from reverie.models.contract.errors import CheckpointError
from reverie.models.pocket.checkpoint import SHIPPED_WEIGHTS, load_pocket
from reverie.models.pocket.network.networks import PocketNets
from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.simulator.simulator import render
from reverie.models.pocket.world.first_frame import first_frame


def codec_psnr(nets: PocketNets, pictures: NDArray[np.uint8]) -> float:
    made = nets.decode(nets.encode(torch.from_numpy(pictures)))
    return float(np.mean([psnr(*pair) for pair in zip(made.numpy(), pictures, strict=True)]))


def test_the_weights_are_small_enough_to_ship() -> None:
    assert SHIPPED_WEIGHTS.stat().st_size <= 16 * 2**20


def test_the_codec_keeps_unseen_pictures() -> None:
    worlds = true_states(draw_worlds(Stream.ACTIONS, 24))
    assert codec_psnr(load_pocket(), render(worlds)) >= 32


def test_the_first_frame_agrees_with_what_is_named() -> None:
    snow = first_frame(3, Biome.SNOW, Hour.NIGHT)
    assert psnr(snow, first_frame(3, Biome.SNOW, Hour.NIGHT)) > 80
    assert psnr(snow, first_frame(3, Biome.DESERT, Hour.NIGHT)) < 30
    assert first_frame(3, None, None).shape == (128, 128, 3)


def test_an_unknown_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    save_file({"a": torch.zeros(1)}, path, {"format": "other/1"})
    with pytest.raises(CheckpointError, match="other/1"):
        load_pocket(path)


def test_another_precision_plays_too() -> None:
    worlds = true_states(draw_worlds(Stream.ACTIONS, 4))
    assert codec_psnr(load_pocket(dtype=torch.float32), render(worlds)) >= 32
