"""Guidance by the action in Oasis: the formula, and a parameter of the session."""

import numpy as np
import pytest
import torch
from loop_rig import Rig
from numpy.typing import NDArray
from tiny_oasis import TinyOasis, tiny_options

from reverie.engine.inputs import ControlId, KeysInput
from reverie.models.contract.controls import KeyEdge
from reverie.models.contract.loop import LoopRequest
from reverie.models.oasis.checkpoint import TINY_DIT, random_components
from reverie.models.oasis.config import ACTIONS
from reverie.models.oasis.guidance import SPACE, WEIGHT, guided_velocity, policy_of
from reverie.models.services.guidance.policies import GuidedCall

CALL = GuidedCall(0.5, "v1", "", 3, SPACE)


def frames(weight: float | None, *, pressed: bool) -> NDArray[np.int64]:
    rig = Rig(TinyOasis(), tiny_options())
    parameters = {} if weight is None else {WEIGHT: weight}
    driver = rig.open(LoopRequest("s1", 7, "", parameters))
    if pressed:
        driver.push([KeysInput(ControlId("k"), "play", (KeyEdge("forward", down=True),))])
    return np.concatenate([each.frames for each in rig.run_chunks("s1", 4)]).astype(np.int64)


@pytest.mark.parametrize("weight", [1.0, 2.5])
def test_a_weight_goes_that_far_from_standing_still(weight: float) -> None:
    transformer = random_components(torch.device("cpu")).transformer
    random = torch.Generator().manual_seed(2)
    config = TINY_DIT
    tokens = config.rows * config.columns
    shape = (2, 2, config.depth, tokens, config.heads, config.head_size)
    past = torch.randn(shape, generator=random)
    x = torch.randn(config.channels, config.height, config.width, generator=random)
    action = torch.rand(len(ACTIONS), generator=random)
    with torch.no_grad():
        made = guided_velocity(transformer, x, 700, action, past, policy_of(weight), CALL)
        level = torch.full((1, 1), 700)
        acting, idle = (
            transformer(x[None, None], level, row[None, None], past[None]).v_BFZhw[0, 0]
            for row in (action, torch.zeros(len(ACTIONS)))
        )
    assert (acting - idle).abs().max() > 1e-3
    torch.testing.assert_close(made, idle + weight * (acting - idle), atol=1e-5, rtol=0)


def test_a_weight_of_one_is_no_guidance() -> None:
    assert (frames(1.0, pressed=True) == frames(None, pressed=True)).all()


def test_a_weight_changes_what_a_key_does_and_nothing_where_none_is_pressed() -> None:
    assert (frames(4.0, pressed=True) != frames(1.0, pressed=True)).any()
    still = frames(4.0, pressed=False) - frames(1.0, pressed=False)
    assert np.abs(still).max() <= 1
