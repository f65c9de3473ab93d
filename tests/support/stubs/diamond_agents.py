"""Atari agents as they are published, with random weights."""

from dataclasses import replace
from pathlib import Path

import torch
from PIL import Image

from reverie.models.diamond.config import ATARI
from reverie.models.diamond.network.denoiser import Denoiser


def write_agent(path: Path, actions: int) -> None:
    """Write an agent that knows so many actions, with a start picture next to it."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(1)
        world = Denoiser(replace(ATARI.world, actions=actions))
    held = {f"denoiser.{name}": value for name, value in world.state_dict().items()}
    torch.save({**held, "actor_critic.lstm.bias": torch.zeros(3)}, path)
    Image.new("RGB", (160, 210), (0, 90, 0)).save(path.parent / "start.png")
