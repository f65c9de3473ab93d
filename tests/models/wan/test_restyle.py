"""What a camera shows, painted over by partial noise."""

import numpy as np
import pytest
import torch
from loop_rig import Rig
from numpy.typing import NDArray
from wan_rig import (
    Again,
    applied,
    cache_of,
    components_of,
    decoded,
    encoded,
    frames_out,
    kinds,
    opened,
    pictures,
    shown,
    wan_rig,
)

from reverie.engine.inputs import ControlId, ControlInput, ParameterInput, PromptInput
from reverie.models.wan.network.schedule import FlowSchedule
from reverie.models.wan.state import OnPrompt, WanPhase

NINE = 9
"""Pictures of the first block: 1 + 4 + 4."""


@pytest.fixture(scope="module")
def loaded() -> Rig:
    return wan_rig("restyle")


def filmed(again: Again, count: int = NINE, **parameters: float) -> Rig:
    """Return a session whose camera has shown some pictures, and nothing since."""
    rig = again()
    driver = opened(rig, parameters=parameters)
    driver.push(shown("camera", pictures(count)))
    rig.run_idle()
    return rig


class TestStrength:
    """From a strength to noise and calls."""

    def test_a_block_begins_with_as_much_noise_as_its_strength_says(self, again: Again) -> None:
        rig = again()
        driver = opened(rig, parameters={"strength": 0.8})
        driver.push(shown("camera", pictures(NINE)))
        rig.run(lambda: driver.state.phase is WanPhase.DENOISE)
        components, schedule = components_of(rig), FlowSchedule.of(5.0)
        source = encoded(rig, pictures(NINE))
        assert driver.state.source
        assert torch.equal(torch.stack(driver.state.source), source)
        # 5 * 0.8 / (1 + 4 * 0.8)
        assert schedule.sigma(driver.state.timesteps[0]) == pytest.approx(4 / 4.2)
        rig.step()
        point = driver.state.point_FZhw
        assert point is not None
        noise = components.noise.first(7, 0, tuple(source.shape))
        assert driver.state.text is not None
        noised = source * (1 - 4 / 4.2) + noise * 4 / 4.2
        flow = components.transformer(
            noised[None], torch.full((1, 3), 4000 / 4.2), driver.state.text, None, (0,)
        ).flow_BFZhw[0]
        clean = noised - 4 / 4.2 * flow
        fresh = components.noise.again(7, 0, 1, tuple(source.shape))
        sigma = schedule.sigma(schedule.warp((500,))[0])
        torch.testing.assert_close(point, (1 - sigma) * clean + sigma * fresh, atol=2e-5, rtol=0)

    @pytest.mark.parametrize(("strength", "calls"), [(0, 0), (0.3, 1), (0.5, 1), (0.8, 2), (1, 2)])
    def test_calls_that_are_above_it_are_left_out(
        self, again: Again, strength: float, calls: int
    ) -> None:
        rig = filmed(again, strength=strength)
        assert kinds(rig, 0).count("denoise") == calls

    def test_without_any_the_pictures_stay_as_they_are(self, again: Again) -> None:
        rig = filmed(again, strength=0.0)
        wanted = decoded(rig, encoded(rig, pictures(NINE)))
        assert np.array_equal(frames_out(rig), wanted)

    def test_all_of_it_is_noise_alone(self, again: Again) -> None:
        rig = filmed(again, strength=1.0)
        other = again()
        opened(other)
        [free] = other.run_chunks("s1", 1)
        assert np.abs(frames_out(rig).astype(int) - free.frames).max() <= 1


class TestCamera:
    """Which pictures make a block."""

    def test_blocks_follow_each_other_and_nothing_moves_by_itself(self, again: Again) -> None:
        rig = filmed(again)
        driver = rig.drivers["s1"]
        assert driver.ready(rig.clock.now_us) is None
        driver.push(shown("camera", pictures(12, seed=4), first=NINE))
        rig.run_idle()
        assert [len(out.frames) for out in rig.frames("s1")] == [9, 12]
        assert (driver.state.frame, len(driver.state.blocks)) == (6, 6)

    def test_one_picture_fills_a_block_and_many_are_thinned_out(self, again: Again) -> None:
        still = filmed(again, 1, strength=0.0)
        same = decoded(still, encoded(still, pictures(1) * NINE))
        assert np.array_equal(frames_out(still), same)
        fast = filmed(again, 17, strength=0.0)
        every_other = decoded(fast, encoded(fast, pictures(17)[::2]))
        assert np.array_equal(frames_out(fast), every_other)

    def test_the_first_picture_begins_another_video(self, again: Again) -> None:
        rig = again()
        driver = opened(rig)
        rig.run_chunks("s1", 2)
        driver.push(shown("camera", pictures(NINE)))
        rig.run_idle()
        assert [len(out.frames) for out in rig.frames("s1")] == [9, 12, 9]
        assert driver.state.frame == 3
        alone = filmed(again)
        fresh = cache_of(alone, alone.drivers["s1"].state)
        assert torch.equal(cache_of(rig, driver.state), fresh)

    def test_prompt_and_strength_repaint_the_picture_that_is_there(self, again: Again) -> None:
        rig = filmed(again, 1)
        said: list[ControlInput] = [
            PromptInput(ControlId("said"), "a neon city"),
            ParameterInput(ControlId("more"), "strength", 1.0),
        ]
        for chunk, item in enumerate(said, start=1):
            rig.drivers["s1"].push([item])
            rig.run_idle()
            assert len(rig.frames("s1")) == chunk + 1
            assert applied(rig, item.control) == chunk

    def test_a_prompt_is_heard_within_a_block(self, again: Again) -> None:
        rig = again()
        driver = opened(rig, parameters={"strength": 1.0, "on_prompt": OnPrompt.FINISH})
        driver.push(shown("camera", pictures(NINE)))
        rig.run(lambda: driver.state.step == 1)
        driver.push([PromptInput(ControlId("said"), "night"), *shown("camera", pictures(1), NINE)])
        rig.run_idle()
        begun = ["encode_text", *["encode_camera"] * 3, "denoise"]
        assert kinds(rig, 0) == [*begun, "encode_text", "denoise", *["decode"] * 3]
        assert len(rig.frames("s1")) == 2, "the picture that came meanwhile is the next block"

    def test_a_block_that_begins_again_is_painted_over_the_same_pictures(
        self, again: Again
    ) -> None:
        def painted(units: int) -> NDArray[np.uint8]:
            rig = again()
            driver = opened(rig, parameters={"strength": 1.0, "on_prompt": OnPrompt.RESTART})
            driver.push(shown("camera", pictures(NINE)))
            for _ in range(units):
                rig.step()
            driver.push([PromptInput(ControlId("said"), "night")])
            rig.run_idle()
            return frames_out(rig)

        assert np.array_equal(painted(units=5), painted(units=0))
