"""A model that costs next to nothing, for the long run."""

import numpy as np
from numpy.typing import NDArray

from reverie.models.frame_generator import FrameGeneratorFamily


class Stripes:
    """A frame generator of drifting stripes."""

    name, title, licence = "stripes", "Stripes that drift", "Apache-2.0"
    width, height, rate_hz = 64, 64, 30.0
    keys = ("left", "right")

    def start(self, seed: int, prompt: str) -> int:
        """Begin at a place that the seed says."""
        return seed

    def frame(self, state: int, key: str | None, prompt: str) -> tuple[int, NDArray[np.uint8]]:
        """Drift by one pixel."""
        row = (np.arange(self.width) * 4 + state) % 256
        picture = np.broadcast_to(row[None, :, None], (self.height, self.width, 3))
        return state + 1, picture.astype(np.uint8)


def stripes() -> FrameGeneratorFamily:
    """Return the family, as a worker looks it up."""
    return FrameGeneratorFamily(Stripes())
