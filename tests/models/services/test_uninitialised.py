"""Networks that are made for a weights file: nothing is drawn, and torch's compiler stays out."""

import subprocess
import sys

import torch
from torch import nn

from reverie.models.services.uninitialised import uninitialised

LOADS_POCKET = """
import sys
from reverie.models.contract.instance import LoadOptions
from reverie.models.pocket.spec import Pocket
Pocket().load(LoadOptions(device="cpu", sessions=1))
assert "torch._dynamo" not in sys.modules
"""


def test_nothing_is_drawn_inside_and_all_is_drawn_afterwards() -> None:
    before = torch.get_rng_state()
    with uninitialised():
        words, layer, drawn = nn.Embedding(5, 3), nn.Linear(3, 2), torch.randn(2, 2)
    assert torch.equal(torch.get_rng_state(), before)
    assert words.weight.shape == (5, 3)
    assert layer.bias.shape == (2,)
    assert drawn.shape == (2, 2)
    assert nn.Linear(64, 64).weight.std() > 0
    assert not torch.equal(torch.get_rng_state(), before)


def test_loading_pocket_does_not_import_the_compiler_of_torch() -> None:
    subprocess.run([sys.executable, "-c", LOADS_POCKET], check=True, timeout=240)
