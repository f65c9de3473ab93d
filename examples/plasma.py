"""Silk to drift over, dyed by words: `reverie serve --model examples/plasma.py:family`."""

from hashlib import blake2b

import numpy as np

from reverie.models.frame_generator import FrameGeneratorFamily

STEER = {"left": (-4, 0), "right": (4, 0), "up": (0, -4), "down": (0, 4)}


class Plasma:
    name, title, licence = "plasma", "Flowing silk that takes its colours from words", "CC0-1.0"
    width, height, rate_hz, keys = 160, 120, 24.0, tuple(STEER)

    def start(self, seed, prompt):
        return np.array([seed % 97, seed % 89, 0.0, 0.0, 0.0]), self._dye(prompt)

    def _dye(self, prompt):
        return np.frombuffer(blake2b(prompt.encode(), digest_size=4).digest(), np.uint8) / 255

    def frame(self, state, key, prompt):
        (x, y, vx, vy, time), dye = state
        vx, vy = 0.9 * np.array([vx, vy]) + 0.1 * np.array(STEER.get(key, (0.3, 0.1)))
        x, y, time = x + vx / 8, y + vy / 8, time + 0.05
        dye = 0.93 * dye + 0.07 * self._dye(prompt)  # a new prompt washes over the picture
        v, u = np.mgrid[: self.height, : self.width] / 30.0 + np.array([y, x])[:, None, None]
        for fold in (1.0, 1.7, 2.9):  # each fold bends the ground that the next one lies on
            u, v = u + np.sin(fold * v + time) / fold, v + np.cos(fold * u - time / 2) / fold
        light = 0.6 + 0.4 * np.sin(2 * u + v)
        phase = 0.8 * np.sin(u - v)[..., None] + 6.3 * dye[0] + (0.4 + dye[1]) * np.arange(3)
        return (np.array([x, y, vx, vy, time]), dye), light[..., None] * (0.5 + 0.5 * np.cos(phase))


def family():
    return FrameGeneratorFamily(Plasma())
