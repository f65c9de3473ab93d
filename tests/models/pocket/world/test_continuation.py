"""Pocket is shown pictures: a clip becomes its history, a camera is repainted (tiny weights)."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from loop_rig import Rig
from numpy.typing import NDArray
from tiny_pocket import tiny_options

from reverie.engine.driver import LoopDriver
from reverie.engine.emissions import ControlApplied, FramesOut
from reverie.engine.inputs import ControlId, ControlInput, ParameterInput, PromptInput, StreamInput
from reverie.models.contract.controls import MediaInput
from reverie.models.contract.loop import LoopRequest
from reverie.models.pocket.simulator.simulator import FRAME_PX
from reverie.models.pocket.spec import WINDOW, Pocket
from reverie.models.pocket.world.continuation import CLIP_FRAMES

Pictures = Sequence[NDArray[np.uint8]]


def pictures(count: int, seed: int = 0) -> Pictures:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 255, (FRAME_PX, FRAME_PX, 3), dtype=np.uint8) for _ in range(count)]


def clip(shown: Pictures, *, ends: bool = True, first: int = 0) -> list[ControlInput]:
    return [
        StreamInput(
            ControlId(f"p{first + number}"),
            "clip",
            MediaInput(number * 83_333, picture, last=ends and number == len(shown) - 1),
        )
        for number, picture in enumerate(shown)
    ]


def camera(control: str, picture: NDArray[np.uint8]) -> StreamInput:
    return StreamInput(ControlId(control), "camera", MediaInput(0, picture))


def opened(loop: str, seed: int = 7, **parameters: float) -> tuple[Rig, LoopDriver]:  # type: ignore[type-arg]
    rig = Rig(Pocket(), tiny_options(), loop=loop)
    spec = rig.kernel.spec
    values = {parameter.name: parameter.default for parameter in spec.parameters}
    request = LoopRequest("s1", seed, "a frozen lake", {**values, **parameters})
    return rig, rig.open(request)


def decoded(rig: Rig, shown: Pictures) -> NDArray[np.uint8]:
    """Return pictures as the codec sees them."""
    nets = rig.family._nets["pocket"]  # type: ignore[attr-defined]
    return np.asarray(nets.decode(nets.encode(torch.from_numpy(np.stack(shown)))))


def test_a_clip_is_shown_as_one_chunk_and_the_world_continues_from_it() -> None:
    rig, driver = opened("video_continuation")
    rig.run_chunks("s1", 2)
    shown = pictures(4)
    driver.push(clip(shown))
    replay = next(out for out in rig.run_chunks("s1", 6) if len(out.frames) > 1)
    assert np.abs(replay.frames.astype(int) - decoded(rig, shown)).max() <= 1
    state = driver._context.states.now.state
    assert len(state.window) <= WINDOW
    receipts = rig.heard_of("s1", ControlApplied)
    assert {each.pts_us for each in receipts if each.control in ("p0", "p3")} == {
        replay.header.pts_us
    }


def test_the_history_before_a_clip_is_no_more_and_that_of_one_clip_is_kept() -> None:
    rig, driver = opened("video_continuation")
    rig.run_chunks("s1", 8)
    driver.push(clip(pictures(2), ends=False))
    rig.run_idle()
    assert len(driver._context.states.now.state.window) == 2
    driver.push(clip(pictures(2, seed=1), first=2))
    rig.run_chunks("s1", 1)
    rig.run(lambda: len(driver._context.states.now.state.blocks) >= 4)
    driver.push(clip(pictures(1, seed=2), first=4))
    rig.run(lambda: len(driver._context.states.now.state.window) == 1)


def test_the_loop_waits_for_the_rest_of_a_clip_and_keeps_its_order() -> None:
    rig, driver = opened("video_continuation")
    rig.run_chunks("s1", 1)
    before = len(rig.frames("s1"))
    shown = pictures(5)
    for number, picture in enumerate(shown):
        last = number == len(shown) - 1
        media = MediaInput(number, picture, last=last)
        driver.push([StreamInput(ControlId(f"p{number}"), "clip", media)])
        if not last:
            rig.run_idle()
    rig.run_chunks("s1", 1)
    out = [frame for each in rig.frames("s1")[before:] for frame in each.frames]
    start = next(
        index
        for index in range(len(out))
        if np.abs(out[index].astype(int) - decoded(rig, shown[:1])[0]).max() <= 1
    )
    replayed = np.stack(out[start : start + 5]).astype(int)
    assert np.abs(replayed - decoded(rig, shown)).max() <= 1


def test_a_full_mailbox_of_pictures_is_one_bounded_chunk() -> None:
    rig, driver = opened("video_continuation")
    rig.run_chunks("s1", 1)
    driver.push(clip(pictures(CLIP_FRAMES)))
    out = next(each for each in rig.run_chunks("s1", 4) if len(each.frames) > 1)
    assert len(out.frames) == CLIP_FRAMES


def test_a_prompt_that_comes_with_a_clip_acts_on_what_follows() -> None:
    def after(prompt: str) -> FramesOut:
        rig, driver = opened("video_continuation")
        rig.run_chunks("s1", 1)
        driver.push([*clip(pictures(2)), PromptInput(ControlId("said"), prompt)])
        rig.run_chunks("s1", 4)
        return rig.frames("s1")[-1]

    assert not np.array_equal(after("a desert").frames, after("a neon city at night").frames)


def test_a_world_continues_from_a_clip_after_a_lost_worker() -> None:
    rig, driver = opened("video_continuation")
    rig.run_chunks("s1", 1)
    driver.push(clip(pictures(3)))
    rig.run_chunks("s1", 3)
    kernel = rig.kernel
    durable = kernel.durable(driver._context.states.now.state)
    assert durable is not None
    assert durable.loop == "video_continuation"
    again = rig.again()
    revived = again.open(driver._context.request, durable=durable, chunks=4)
    assert len(again.run_chunks("s1", 2)) == 2
    revived.close()


def test_a_camera_is_repainted_picture_by_picture_and_nothing_moves_by_itself() -> None:
    rig, driver = opened("restyle")
    rig.run_chunks("s1", 1)
    first, second = pictures(2)
    driver.push([camera("a", first)])
    rig.run_idle()
    count = len(rig.frames("s1"))
    assert driver.ready(rig.clock.now_us) is None
    driver.push([camera("b", second)])
    rig.run_idle()
    assert len(rig.frames("s1")) == count + 1
    assert not np.array_equal(rig.frames("s1")[-1].frames, rig.frames("s1")[-2].frames)


def test_the_same_picture_looks_the_same_each_time() -> None:
    rig, driver = opened("restyle")
    [picture] = pictures(1)
    looks = []
    for number in range(3):
        driver.push([camera(f"p{number}", picture)])
        rig.run_idle()
        looks.append(rig.frames("s1")[-1].frames)
    assert np.array_equal(looks[1], looks[2])


def test_prompt_and_strength_repaint_the_picture_that_is_there() -> None:
    rig, driver = opened("restyle", strength=0.3)
    [picture] = pictures(1)
    driver.push([camera("p", picture)])
    rig.run_idle()
    looks = [rig.frames("s1")[-1].frames]
    said: list[ControlInput] = [
        PromptInput(ControlId("said"), "a neon city at night"),
        ParameterInput(ControlId("more"), "strength", 1.0),
    ]
    for item in said:
        driver.push([item])
        rig.run_idle()
        looks.append(rig.frames("s1")[-1].frames)
    assert not np.array_equal(looks[0], looks[1])
    assert not np.array_equal(looks[1], looks[2])
    applied = {each.control for each in rig.heard_of("s1", ControlApplied)}
    assert {"p", "said", "more"} <= applied


@pytest.mark.parametrize("loop", ["restyle", "video_continuation"])
def test_a_picture_that_waits_for_the_world_to_begin_is_not_lost(loop: str) -> None:
    rig, driver = opened(loop)
    stream = "camera" if loop == "restyle" else "clip"
    media = MediaInput(0, pictures(1)[0], last=True)
    driver.push([StreamInput(ControlId("early"), stream, media), PromptInput(ControlId("p"), "x")])
    rig.run(lambda: "early" in {each.control for each in rig.heard_of("s1", ControlApplied)})


def test_a_picture_whose_step_fails_is_tried_again() -> None:
    rig, driver = opened("restyle")
    rig.run_chunks("s1", 1)
    driver.push([camera("p", pictures(1)[0])])
    rig.run(lambda: driver._context.open_chunk.open)
    driver.fail(ValueError("once"))
    rig.run_idle()
    assert "p" in {each.control for each in rig.heard_of("s1", ControlApplied)}
