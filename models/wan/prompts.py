"""Prompts as rows, each encoded once: equal words under equal weights share an entry of the cache.

Rows are made beside the step thread, before a prompt is delivered (`prepare`); a unit that does not
find them makes them itself.
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
"""The prompt that asks for nothing."""

_stream = cast(Callable[[torch.device], torch.cuda.Stream], torch.cuda.Stream)
"""The library types its constructor in part."""


class WanPrompts:
    """Encodes prompts with an instance's text encoder."""

    def __init__(self, components: WanComponents, instance: ModelInstance) -> None:
        self._encoder, self._adapters = components.text, components.adapters
        self._instance = instance
        self._beside: torch.cuda.Stream | None = None

    def rows(self, prompt: str, mix: Mix) -> Tensor:
        """Return the rows [rows, text_dim] of a prompt under a mix of adapters."""
        key = self._key(prompt, mix)
        rows = self._instance.encodings.get(key)
        if rows is None:
            rows = self._encoded(prompt, mix)
            self._instance.encodings.put(key, rows)
        return rows

    def prepare(self, prompt: str, parameters: Mapping[str, float]) -> None:
        """Have the rows of a prompt in the cache; see `ModelInstance.prepare_prompt`.

        Those of the empty one as well, which guidance may ask for at any step.
        """
        mix = self._adapters.mix(parameters)
        for text in (prompt, EMPTY):
            key = self._key(text, mix)
            if key not in self._instance.encodings:
                on_gpu = self._instance.device.type == "cuda"
                encode = self._encoded_beside if on_gpu else self._encoded
                self._instance.encodings.put(key, encode(text, mix))

    def knows(self, prompt: str, parameters: Mapping[str, float]) -> bool:
        """Tell whether `prepare` would find everything; see `ModelInstance.knows_prompt`."""
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
    def _encoded(self, prompt: str, mix: Mix) -> Tensor:
        with self._adapters.applied(mix):
            return self._encoder.encode(prompt)

    def _encoded_beside(self, prompt: str, mix: Mix) -> Tensor:
        """Encode on a stream of its own, so that no step waits in line behind the encoder."""
        device = self._instance.device
        beside = self._beside = self._beside or _stream(device)
        with torch.cuda.stream(beside):
            rows = self._encoded(prompt, mix)
        beside.synchronize()
        rows.record_stream(torch.cuda.default_stream(device))
        return rows


class EmptyPrompt:
    """The prompt that asks for nothing, as the layers read it: the branch without one, in guidance.

    Kept under the mix of adapters that was asked for last; most sessions have the same.
    """

    def __init__(self, components: WanComponents, instance: ModelInstance) -> None:
        self._components, self._instance = components, instance
        self._prompts = WanPrompts(components, instance)
        self._kept: tuple[tuple[str, Mix], Prompt] | None = None

    def read(self, mix: Mix) -> Prompt:
        """Return it under a mix."""
        key = (self._instance.weights_version, mix)
        if self._kept is None or self._kept[0] != key:
            rows = self._prompts.rows(EMPTY, mix)
            with self._components.adapters.applied(mix):
                self._kept = (key, self._components.transformer.read_prompt(rows[None]))
        return self._kept[1]
