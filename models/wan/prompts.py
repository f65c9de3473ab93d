"""Encoded prompts, each encoded once: equal texts with equal weights share an entry of the cache.

Prompts are encoded on another thread than the step thread, before they are delivered (`prepare`); a
unit that does not find its prompt encodes it.
"""

from collections.abc import Callable, Mapping
from typing import cast

import torch
from torch import Tensor

from reverie.models.contract.encoder_cache import CacheKey
from reverie.models.contract.instance import ModelInstance
from reverie.models.services.adapters import Mix
from reverie.models.wan.components import WanComponents
from reverie.models.wan.network.transformer import Prompt

COMPONENT = "text"
EMPTY = ""
"""The empty prompt."""

_stream = cast(Callable[[torch.device], torch.cuda.Stream], torch.cuda.Stream)
"""The library types its constructor only in part."""


class WanPrompts:
    """Encodes prompts with an instance's text encoder."""

    def __init__(self, components: WanComponents, instance: ModelInstance) -> None:
        self._encoder, self._adapters = components.text, components.adapters
        self._instance = instance
        self._own_stream: torch.cuda.Stream | None = None

    def rows(self, prompt: str, mix: Mix) -> Tensor:
        """Return the rows [rows, text_dim] of a prompt under a mix of adapters."""
        key = self._key(prompt, mix)
        rows = self._instance.encodings.get(key)
        if rows is None:
            rows = self._encode(prompt, mix)
            self._instance.encodings.put(key, rows)
        return rows

    def prepare(self, prompt: str, parameters: Mapping[str, float]) -> None:
        """Encode a prompt into the cache; see `ModelInstance.prepare_prompt`.

        The empty prompt is encoded as well, because guidance may need it at any step.
        """
        mix = self._adapters.mix(parameters)
        for text in (prompt, EMPTY):
            key = self._key(text, mix)
            if key not in self._instance.encodings:
                on_gpu = self._instance.device.type == "cuda"
                encode = self._encode_on_own_stream if on_gpu else self._encode
                self._instance.encodings.put(key, encode(text, mix))

    def knows(self, prompt: str, parameters: Mapping[str, float]) -> bool:
        """Tell whether a prompt is already prepared; see `ModelInstance.knows_prompt`."""
        mix = self._adapters.mix(parameters)
        keys = (self._key(text, mix) for text in (prompt, EMPTY))
        return all(key in self._instance.encodings for key in keys)

    def _key(self, prompt: str, mix: Mix) -> CacheKey:
        return CacheKey(
            model=self._instance.spec.name,
            component=COMPONENT,
            weights_version=self._instance.weights_version,
            inputs=(prompt,),
            adapters=self._adapters.versions(mix, COMPONENT),
            precision=str(self._instance.dtype),
        )

    @torch.no_grad()
    def _encode(self, prompt: str, mix: Mix) -> Tensor:
        with self._adapters.applied(mix):
            return self._encoder.encode(prompt)

    def _encode_on_own_stream(self, prompt: str, mix: Mix) -> Tensor:
        """Encode on a separate CUDA stream, so that steps do not wait for the encoder."""
        device = self._instance.device
        stream = self._own_stream = self._own_stream or _stream(device)
        with torch.cuda.stream(stream):
            rows = self._encode(prompt, mix)
        stream.synchronize()
        rows.record_stream(torch.cuda.default_stream(device))
        return rows


class EmptyPrompt:
    """The empty prompt as the layers read it, for the guidance branch without a prompt.

    It is kept for the most recent mix of adapters; most sessions have the same one.
    """

    def __init__(self, components: WanComponents, instance: ModelInstance) -> None:
        self._components, self._instance = components, instance
        self._prompts = WanPrompts(components, instance)
        self._kept: tuple[tuple[str, Mix], Prompt] | None = None

    def read(self, mix: Mix) -> Prompt:
        """Return the empty prompt under a mix of adapters."""
        key = (self._instance.weights_version, mix)
        if self._kept is None or self._kept[0] != key:
            rows = self._prompts.rows(EMPTY, mix)
            with self._components.adapters.applied(mix):
                self._kept = (key, self._components.transformer.read_prompt(rows[None]))
        return self._kept[1]
