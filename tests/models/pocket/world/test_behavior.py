"""Records of pocket's frames: enough to make them again, and to train on them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_pocket import tiny_weights

from reverie.engine.rollouts import RolloutChunk, Rollouts, roll_out
from reverie.models.contract.behavior import ActionRecord, Behavior
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import LoopRequest
from reverie.models.pocket.checkpoint import load_pocket
from reverie.models.pocket.network.networks import PocketNets
from reverie.models.pocket.network.sampler import frame_noise, noise_levels
from reverie.models.pocket.simulator.biomes import Action, Hour
from reverie.models.pocket.simulator.captions import read_caption
from reverie.models.pocket.spec import WINDOW, WORLD_MODEL, instance_of
from reverie.models.pocket.world.durable import DurableWindow, durable_clip
from reverie.models.pocket.world.kernel import PocketKernel
from reverie.models.pocket.world.prompts import read_prompt

REQUEST = LoopRequest("s1", 7, "a green meadow by day", {"steps": 2.0, "guidance": 1.0})


@pytest.fixture(scope="module")
def nets() -> PocketNets:
    return load_pocket(tiny_weights(), dtype=torch.float32)


@pytest.fixture
def rollouts(nets: PocketNets) -> Rollouts:
    instance: ModelInstance = instance_of(nets, sessions=2, history_chunks=0)
    return Rollouts(PocketKernel(WORLD_MODEL, nets, instance), instance)


def script(session: str, chunk: int) -> ActionRecord:
    prompt = "a neon city" if chunk == 3 else None
    parameters = {"steps": 4.0} if chunk == 2 else {}
    held = {"move": ("left",)} if chunk % 2 else {}
    return ActionRecord(prompt=prompt, held=held, parameters=parameters)


def behaviors(made: list[RolloutChunk]) -> list[Behavior]:
    return [one.record.behavior for one in made if one.record.behavior is not None]


def test_a_frame_is_described_by_what_made_it(nets: PocketNets, rollouts: Rollouts) -> None:
    given, one, two, three = behaviors(roll_out(rollouts, [REQUEST], script, 4)["s1"])
    assert (given.levels, given.actions, "noise" in given.tensors) == ((), {}, False)
    assert (one.levels, one.actions) == (noise_levels(2), {"move": "left"})
    assert (two.levels, two.actions) == (noise_levels(4), {})
    assert (two.prompt, three.prompt) == (REQUEST.prompt, "a neon city")
    noise = frame_noise(7, 2, tuple(two.tensors["clean"].shape))
    assert torch.equal(two.tensors["noise"], noise)
    words = read_prompt(nets.vocabulary, "a neon city", None, Hour.DAY).ids
    assert three.tensors["words"].tolist() == list(words)


def test_a_record_is_enough_to_do_it_again(rollouts: Rollouts) -> None:
    made = roll_out(rollouts, [REQUEST], script, 6)["s1"]

    def again(session: str, chunk: int) -> ActionRecord:
        [controls] = made[chunk].record.controls or [None]
        if controls is None:  # the start frame takes nothing
            return ActionRecord()
        held = {name: keys.held for name, keys in controls.keys.items()}
        return ActionRecord(controls.prompt, held, controls.axes, controls.parameters)

    request = replace(REQUEST, session="s2", seed=made[0].record.seed)
    for one, other in zip(made, roll_out(rollouts, [request], again, 6)["s2"], strict=True):
        assert one.record.behavior is not None
        assert other.record.behavior is not None
        same = torch.equal(
            one.record.behavior.tensors["clean"], other.record.behavior.tensors["clean"]
        )
        assert same, f"frame {one.record.chunk}"
        assert np.array_equal(one.frames["video"], other.frames["video"])


def test_records_can_be_trained_on(rollouts: Rollouts) -> None:
    [_, one] = behaviors(roll_out(rollouts, [REQUEST], script, 2)["s1"])
    weight = torch.ones(16, 16, requires_grad=True)
    (one.tensors["clean"] @ weight).sum().backward()  # type: ignore[no-untyped-call]
    assert weight.grad is not None


@pytest.mark.parametrize("frames", [1, WINDOW - 1, WINDOW])
def test_a_session_begins_on_given_frames(
    nets: PocketNets, rollouts: Rollouts, frames: int
) -> None:
    """Frames that a session has made, given to another, are as good as its own state."""
    rollouts.open(REQUEST)
    left = ActionRecord(held={"move": ("left",)})
    walked = behaviors([rollouts.advance({"s1": left})["s1"] for _ in range(WINDOW + 1)])
    kept = rollouts.durable("s1")
    rollouts.close("s1")
    named = read_caption(REQUEST.prompt)
    assert named.biome is not None
    assert named.hour is not None
    clip = DurableWindow(
        clean_FZhw=torch.stack([one.tensors["clean"] for one in walked[-frames:]]),
        before_Zhw=walked[-frames - 1].tensors["clean"],
        actions=[Action.LEFT] * frames,
        prompt=REQUEST.prompt,
        biome=named.biome,
        hour=named.hour,
        frame=WINDOW + 1,
    )
    start = durable_clip(clip, nets, steps=2)
    assert (start.text, start.loop) == (kept.text, kept.loop)
    for name in ("clean", "text", "action"):
        assert torch.equal(start.data[name], kept.data[name][-frames:])
    [first, second] = behaviors(roll_out(rollouts, [REQUEST], script, 2, {"s1": start})["s1"])
    shape = tuple(first.tensors["clean"].shape)
    assert torch.equal(first.tensors["noise"], frame_noise(7, WINDOW + 1, shape))
    assert torch.equal(second.tensors["noise"], frame_noise(7, WINDOW + 2, shape))
    assert first.levels == noise_levels(2), "the first frame that a session makes is denoised"
