"""A picture or a clip that is pushed: it is shown, and then it is the history."""

import numpy as np
import pytest
import torch
from loop_rig import Rig
from wan_rig import (
    Again,
    applied,
    cache_of,
    decoded,
    encoded,
    frames_out,
    kinds,
    opened,
    pictures,
    shown,
    wan_rig,
)

from reverie.engine.driver import LoopDriver
from reverie.engine.inputs import ControlId, PromptInput
from reverie.models.contract.loop import LoopRequest
from reverie.models.wan.checkpoint.loading import TINY_CAUSAL
from reverie.models.wan.durable import durable_latents
from reverie.models.wan.state import OnPrompt, WanPhase, WanState


@pytest.fixture(scope="module")
def loaded() -> Rig:
    return wan_rig()


def settle(rig: Rig) -> WanState:
    """Run until a chunk is to begin; return the state."""
    driver: LoopDriver[WanState] = rig.drivers["s1"]
    rig.run(lambda: driver.state.phase is WanPhase.BLOCK and not driver.state.fresh)
    return driver.state


def state_after(again: Again, count: int) -> tuple[Rig, WanState]:
    """Push a clip to a session that has made a chunk; return it once the clip is history."""
    rig = again()
    driver = opened(rig)
    rig.run_chunks("s1", 1)
    driver.push(shown("clip", pictures(count)))
    rig.run(lambda: driver.state.frame == 1 + -(-(count - 1) // 4))
    return rig, settle(rig)


@pytest.mark.parametrize("count", [1, 2, 4, 5, 12, 14])
def test_a_clip_is_shown_frame_for_frame_and_becomes_the_history(again: Again, count: int) -> None:
    rig, state = state_after(again, count)
    latents = encoded(rig, pictures(count))
    assert torch.equal(torch.stack([frame.clean_Zhw for frame in state.window]), latents)
    assert [frame.number for frame in state.window] == list(range(len(latents)))
    out = frames_out(rig, since=1)
    assert len(out) == count
    assert np.array_equal(out, decoded(rig, latents)[:count])


@pytest.mark.parametrize("count", [1, 5, 14])
def test_the_history_is_that_of_the_same_latents_given_at_the_start(
    again: Again, count: int
) -> None:
    rig, state = state_after(again, count)
    other = again()
    version = other.instance.weights_version
    given = durable_latents(encoded(rig, pictures(count)), "a lake", TINY_CAUSAL, version)
    driver = other.open(LoopRequest("s1", 7, "a lake", {"on_prompt": 1}), durable=given)
    rewritten = settle(other)
    assert torch.equal(cache_of(rig, state), cache_of(other, rewritten))
    [one], [two] = rig.run_chunks("s1", 1), other.run_chunks("s1", 1)
    # A clip whose last group was filled has pictures in it that are not shown; the rest is equal.
    assert np.array_equal(one.frames, two.frames)
    driver.close()


def test_a_clip_that_comes_in_pieces_is_the_clip_that_comes_at_once(again: Again) -> None:
    rig, state = state_after(again, 14)
    slow = again()
    driver = opened(slow)
    slow.run_chunks("s1", 1)
    clip = shown("clip", pictures(14))
    for start in range(0, 14, 3):
        slow.run_idle() if start else None
        driver.push(clip[start : start + 3])
    slow.run(lambda: driver.state.frame == 5)
    assert torch.equal(cache_of(slow, settle(slow)), cache_of(rig, state))
    assert np.array_equal(frames_out(slow, since=1)[:14], frames_out(rig, since=1)[:14])


def test_what_is_missing_of_a_clip_is_waited_for(again: Again) -> None:
    rig = again()
    driver = opened(rig)
    rig.run_chunks("s1", 1)
    driver.push([*shown("clip", pictures(3), ends=False), PromptInput(ControlId("p"), "night")])
    rig.run_idle()
    assert len(frames_out(rig, since=1)) == 1
    driver.push(shown("clip", pictures(1, seed=9), first=3))
    rig.run_chunks("s1", 2)
    assert [len(out.frames) for out in rig.frames("s1")] == [9, 1, 3, 12]


def test_a_second_clip_takes_the_place_of_the_first(again: Again) -> None:
    rig = again()
    driver = opened(rig)
    driver.push([*shown("clip", pictures(5)), *shown("clip", pictures(6, seed=8), first=5)])
    rig.run(lambda: driver.state.frame == 3)
    state = settle(rig)
    second = encoded(rig, pictures(6, seed=8))
    assert torch.equal(torch.stack([frame.clean_Zhw for frame in state.window]), second)
    assert len(frames_out(rig)) == 5 + 6
    assert kinds(rig, 0).count("context") == 0, "the first would be written for nothing"


def test_a_clip_waits_for_the_block_in_the_making(again: Again) -> None:
    rig = again()
    driver = opened(rig, parameters={"on_prompt": OnPrompt.FINISH})
    rig.run(lambda: driver.state.phase is WanPhase.DENOISE)
    driver.push([*shown("clip", pictures(1)), PromptInput(ControlId("p"), "night")])
    rig.run_chunks("s1", 3)
    assert [len(out.frames) for out in rig.frames("s1")] == [9, 1, 12]
    assert applied(rig, "clip0") == applied(rig, "p") == 1
    assert "recache" not in kinds(rig, 1), "the window is replaced anyway"


def test_a_clip_takes_the_place_of_a_block_that_would_begin_again(again: Again) -> None:
    rig = again()
    driver = opened(rig, parameters={"on_prompt": OnPrompt.RESTART})
    rig.run(lambda: driver.state.phase is WanPhase.DENOISE)
    driver.push(shown("clip", pictures(1)))
    rig.run_chunks("s1", 2)
    assert [len(out.frames) for out in rig.frames("s1")] == [1, 12]
    assert kinds(rig, 0) == ["encode_text", "denoise", "encode_clip", "decode"]


def test_an_interrupt_within_a_clip_goes_on_with_the_rest_of_it(again: Again) -> None:
    rig = again()
    driver = opened(rig)
    rig.run_chunks("s1", 1)
    clip = shown("clip", pictures(14))
    driver.push(clip[:6])
    rig.run(lambda: driver.state.phase is WanPhase.ENCODE)
    driver.interrupt(0)
    driver.push(clip[6:])
    rig.run(lambda: driver.state.frame == 5)
    out = frames_out(rig, since=1)[:14]
    assert np.array_equal(out, decoded(rig, encoded(rig, pictures(14)))[:14])


def test_a_rewind_goes_back_to_before_a_clip(again: Again) -> None:
    rig = again()
    driver = opened(rig)
    rig.run_chunks("s1", 1)
    undisturbed = rig.run_chunks("s1", 1)[0].frames
    driver.push(shown("clip", pictures(5)))
    rig.run_chunks("s1", 2)
    driver.rewind(0)
    assert np.array_equal(rig.run_chunks("s1", 1)[0].frames, undisturbed)
