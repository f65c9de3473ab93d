"""Few-step sampling along the straight path from noise to latents (arXiv:2210.02747).

The model predicts the clean end of the path from a point on it; a step moves the point along the
line through that prediction. Level 1 is pure noise, level 0 the clean latents.
"""

from torch import Tensor

from reverie.models.contract.seeds import normal

MAX_STEPS = 4
LEVEL_SHIFT = 3.0
"""How far the levels lean towards noise, where a frame is decided; as in training."""
TEMPERATURE = 1.0
"""Deviation of the noise that a frame starts from. The noise says which land comes into view
(`noise_features.py`), so another deviation would draw other maps than the true ones."""
CONTEXT_LEVEL = 0.0
"""Noise level that the context pass names, on latents without noise."""


def frame_noise(seed: int, frame: int, shape: tuple[int, ...]) -> Tensor:
    """Return the standard normal noise, on the CPU, that a frame of a session starts from."""
    return normal(seed, "frame", frame, shape)


def noise_levels(steps: int, strength: float = 1.0) -> tuple[float, ...]:
    """Return the levels at which the model is called, falling, for `steps` calls.

    Args:
        steps: 1 to `MAX_STEPS`.
        strength: above 0; the distance from a given picture at which to begin; 1 is pure noise.
    """
    return tuple(shifted(strength * (1.0 - step / steps)) for step in range(steps))


def shifted(even: float) -> float:
    """Bend evenly spaced levels towards 1; 0 and 1 stay (arXiv:2403.03206, section 5.3.2)."""
    return LEVEL_SHIFT * even / (1 + (LEVEL_SHIFT - 1) * even)


def next_point(point: Tensor, clean: Tensor, level: float, next_level: float) -> Tensor:
    """Move from `level` to `next_level` on the line through `point` and the predicted `clean`."""
    return clean + (next_level / level) * (point - clean)
