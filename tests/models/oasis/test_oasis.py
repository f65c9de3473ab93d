"""Oasis with and without its cache, and its controls; `test_parity.py` has the public numbers."""

import pytest
import torch
from torch import Tensor

from reverie.models.contract.controls import Controls, KeyEdge, KeyInput
from reverie.models.oasis.checkpoint import TINY_DIT, random_components
from reverie.models.oasis.components import OasisComponents
from reverie.models.oasis.config import ACTIONS, DitConfig, VaeConfig
from reverie.models.oasis.kernel import CONTROL, action_row
from reverie.models.oasis.network.transformer import OasisTransformer
from reverie.models.oasis.network.vae import OasisVae
from reverie.models.oasis.sampler import CONTEXT_LEVEL

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def components() -> OasisComponents:
    return random_components(CPU)


def window(frames: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return latents, levels and actions of a window."""
    random = torch.Generator().manual_seed(4)
    shape = (1, frames, TINY_DIT.channels, TINY_DIT.height, TINY_DIT.width)
    levels = torch.full((1, frames), CONTEXT_LEVEL)
    levels[0, -1] = 700
    actions = torch.rand(1, frames, len(ACTIONS), generator=random)
    return torch.randn(shape, generator=random), levels, actions


class TestTransformer:
    """One call."""

    def test_a_frame_beside_a_cached_past_is_the_frame_of_the_whole_window(
        self, components: OasisComponents
    ) -> None:
        x, levels, actions = window(4)
        with torch.no_grad():
            whole = components.transformer(x, levels, actions).v_BFZhw[0, -1]
            past = components.transformer(x[:, :-1], levels[:, :-1], actions[:, :-1]).cached_BF2LNAd
            alone = components.transformer(x[:, -1:], levels[:, -1:], actions[:, -1:], past)
        torch.testing.assert_close(alone.v_BFZhw[0, -1], whole, atol=1e-5, rtol=1e-5)

    def test_the_public_sizes_are_those_of_half_a_billion(self) -> None:
        with torch.device("meta"):
            count = sum(p.numel() for p in OasisTransformer(DitConfig()).parameters())
            codec = OasisVae(VaeConfig())
        assert 5.5e8 < count < 6.5e8
        assert len(codec.decoder) == 12


class TestLoop:
    """Frames through the driver."""

    def test_an_action_row_holds_what_is_held_what_was_tapped_and_the_camera(self) -> None:
        tapped = (KeyEdge("jump", down=True), KeyEdge("jump", down=False))
        keys = {CONTROL: KeyInput(tapped, ("forward",))}
        row = action_row(Controls(keys=keys, axes={"cameraY": -3.0}))
        wanted = {"forward": 1.0, "jump": 1.0, "cameraY": -1.0}
        assert {name: float(v) for name, v in zip(ACTIONS, row, strict=True) if v} == wanted
