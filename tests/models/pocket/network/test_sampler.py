import pytest
import torch

from reverie.models.pocket.network.sampler import MAX_STEPS, next_point, noise_levels


@pytest.mark.parametrize("steps", range(1, MAX_STEPS + 1))
def test_levels_fall_from_pure_noise_and_lean_towards_it(steps: int) -> None:
    levels = noise_levels(steps)
    assert len(levels) == steps
    assert levels[0] == 1.0
    assert list(levels) == sorted(set(levels), reverse=True)
    assert all(level >= 1 - step / steps for step, level in enumerate(levels))


def test_the_last_step_lands_on_the_prediction() -> None:
    point, clean = torch.randn(4), torch.randn(4)
    torch.testing.assert_close(next_point(point, clean, 0.5, 0.0), clean)


def test_a_step_stays_on_the_line_between_noise_and_latents() -> None:
    noise, clean = torch.randn(4), torch.randn(4)
    point = 0.2 * clean + 0.8 * noise
    torch.testing.assert_close(next_point(point, clean, 0.8, 0.4), 0.6 * clean + 0.4 * noise)
