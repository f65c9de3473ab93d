"""A recording of public code: numbers, and how they were made."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

GOLDENS = Path(__file__).resolve().parents[2] / "goldens"


@dataclass(frozen=True)
class Golden:
    """One file below `tests/goldens`; its README says what the names mean."""

    numbers: dict[str, Tensor]
    meta: dict[str, Any]

    @classmethod
    def read(cls, name: str) -> "Golden":
        path = GOLDENS / f"{name}.safetensors"
        with safe_open(path, "pt") as file:
            return cls(load_file(path), json.loads(file.metadata()["meta"]))

    def __getitem__(self, name: str) -> Tensor:
        return self.numbers[name]

    def below(self, prefix: str) -> dict[str, Tensor]:
        """Return the numbers whose names begin so, by the rest of their names."""
        return {
            name.removeprefix(prefix): value
            for name, value in self.numbers.items()
            if name.startswith(prefix)
        }


def assert_near(made: Tensor, wanted: Tensor, tolerance: float, what: str) -> None:
    assert made.shape == wanted.shape, f"{what}: {tuple(made.shape)}, not {tuple(wanted.shape)}"
    worst = (made - wanted).abs().max().item()
    assert worst <= tolerance, f"{what} is off by {worst:.2g}"
    assert wanted.std() > 0.01, f"{what}: a constant would agree with anything"
