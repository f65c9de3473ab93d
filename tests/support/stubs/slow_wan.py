"""Tiny Wan behind a text encoder that takes as long as a test says; see `slow_reader.py`."""

import threading
from dataclasses import replace
from pathlib import Path

from slow_reader import WAITS
from tiny_wan import TinyWan
from torch import Tensor

from reverie.models.contract.instance import LoadOptions, ModelInstance
from reverie.models.wan.checkpoint.loading import random_components
from reverie.models.wan.components import PromptEncoder
from reverie.models.wan.spec import assemble

LOCATION = f"{Path(__file__).resolve()}:SlowWan"


class SlowText:
    """Waits at a gate, and refuses to be waited for by the step thread."""

    def __init__(self, encoder: PromptEncoder) -> None:
        self._encoder = encoder

    def encode(self, prompt: str) -> Tensor:
        if prompt.startswith(WAITS):
            if threading.current_thread().name != "prompt-reader":
                raise RuntimeError("a step waits for the text encoder")
            with open(prompt.removeprefix(WAITS)) as gate:
                gate.read()
        return self._encoder.encode(prompt)


class SlowWan(TinyWan):
    """Needs no checkpoint."""

    def load(self, options: LoadOptions) -> ModelInstance:
        loaded = random_components()
        components = replace(loaded.components, text=SlowText(loaded.components.text))
        instance = assemble(components, loaded.version, options)
        self._components[instance.name] = components
        return instance
