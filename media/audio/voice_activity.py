"""The likelihood of speech: the network of silero-vad, in numpy.

The package (an optional extra) brings the weights; the network is small enough to run without a
framework, which the server's process does not need then: four convolutions over a spectrum, a
recurrent cell and a sigmoid, for each 32 ms of sound.

Shapes: C channels, T moments within a window, K taps, O output channels.
"""

from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from reverie.media.errors import MissingExtraError

RATE_HZ = 16_000
WINDOW = 512
"""Samples of one window."""

_CONTEXT = 64
_TAPS, _STRIDE = 256, 128
_WIDTH = 128
_WEIGHTS = "silero_vad/data/silero_vad_16k.safetensors"

Array = NDArray[np.float32]


@cache
def weights() -> dict[str, Array]:
    """Return the weights that the package brings; read once a process.

    Raises:
        MissingExtraError: the package is not installed, or is an unknown version.
    """
    try:
        return load_file(str(distribution("silero-vad").locate_file(_WEIGHTS)))
    except (PackageNotFoundError, OSError, SafetensorError):
        text = "speech detection needs silero-vad: pip install '.[vad]' in a checkout of reverie"
        raise MissingExtraError(text) from None


@dataclass(slots=True)
class VoiceActivity:
    """One stream of sound at `RATE_HZ`, mono, window by window."""

    _weights: dict[str, Array] = field(default_factory=weights)
    _context: Array = field(default_factory=lambda: np.zeros(_CONTEXT, np.float32))
    _hidden: Array = field(default_factory=lambda: np.zeros(_WIDTH, np.float32))
    _cell: Array = field(default_factory=lambda: np.zeros(_WIDTH, np.float32))

    def likelihood(self, window: Array) -> float:
        """Return the likelihood, 0 to 1, that `WINDOW` samples hold speech."""
        heard = np.concatenate([self._context, window])
        self._context = window[-_CONTEXT:]
        x_CT = self._spectrum(heard)
        for name, stride in (("conv1", 1), ("conv2", 2), ("conv3", 2), ("conv4", 1)):
            x_CT = np.maximum(self._convolved(x_CT, name, stride), 0)
        self._remember(x_CT[:, 0])
        found = self._weights["final_conv.weight"][0, :, 0] @ np.maximum(self._hidden, 0)
        return float(_sigmoid(found + self._weights["final_conv.bias"])[0])

    def _spectrum(self, heard: Array) -> Array:
        mirrored = np.concatenate([heard, heard[-2 : -2 - _CONTEXT : -1]])
        frames_TK = np.lib.stride_tricks.sliding_window_view(mirrored, _TAPS)[::_STRIDE]
        both_CT = self._weights["stft_conv.weight"][:, 0] @ frames_TK.T
        half = len(both_CT) // 2
        strength: Array = np.hypot(both_CT[:half], both_CT[half:])
        return strength

    def _convolved(self, x_CT: Array, name: str, stride: int) -> Array:
        weight_OCK, bias_O = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        padded = np.pad(x_CT, ((0, 0), (1, 1)))
        taps_CTK = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=1)[:, ::stride]
        moments = taps_CTK.shape[1]
        columns = taps_CTK.transpose(0, 2, 1).reshape(-1, moments)
        made: Array = weight_OCK.reshape(len(weight_OCK), -1) @ columns + bias_O[:, None]
        return made

    def _remember(self, x_C: Array) -> None:
        known = self._weights
        gates = known["lstm_cell.weight_ih"] @ x_C + known["lstm_cell.bias_ih"]
        gates += known["lstm_cell.weight_hh"] @ self._hidden + known["lstm_cell.bias_hh"]
        enter, forget, change, leave = np.split(gates, 4)
        cell = _sigmoid(forget) * self._cell + _sigmoid(enter) * np.tanh(change)
        self._cell = cell.astype(np.float32)
        self._hidden = (_sigmoid(leave) * np.tanh(cell)).astype(np.float32)


def _sigmoid(x: Array) -> Array:
    return (1 / (1 + np.exp(-x))).astype(np.float32)
