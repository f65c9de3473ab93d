"""Prompts as vectors, each encoded once: equal words under equal weights share a cache entry.

Shapes: T size of a text embedding.
"""

from torch import Tensor

from reverie.models.contract.encoder_cache import CacheKey
from reverie.models.contract.instance import ModelInstance
from reverie.models.contract.loop import PromptNotes
from reverie.models.pocket.network.networks import PocketNets
from reverie.models.pocket.network.vocabulary import TokenizedPrompt, Vocabulary
from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.simulator.captions import read_caption, reminder

_EMPTY = TokenizedPrompt((), (), None)


def read_prompt(
    vocabulary: Vocabulary, prompt: str, biome: Biome | None, hour: Hour | None
) -> TokenizedPrompt:
    """Return the words of a prompt, after a reminder of the biome and hour that it leaves open.

    Without it, only the pixels would carry the colours for as long as no prompt names them.
    """
    named = read_caption(prompt)
    kept = reminder(biome if named.biome is None else None, hour if named.hour is None else None)
    return vocabulary.remind(vocabulary.encode(prompt), kept)


class PocketPrompts:
    """Embeds prompts with an instance's text encoder."""

    def __init__(self, nets: PocketNets, instance: ModelInstance) -> None:
        self._nets = nets
        self._instance = instance

    def embed(
        self, prompt: str, biome: Biome | None, hour: Hour | None
    ) -> tuple[Tensor, PromptNotes]:
        """Embed a prompt after a reminder of the biome and hour that it does not name."""
        read = read_prompt(self._nets.vocabulary, prompt, biome, hour)
        return self._embedding(read), PromptNotes(read.unknown_words, read.truncated_at)

    def empty(self) -> Tensor:
        """Embed the empty prompt: the branch of guidance without a prompt."""
        return self._embedding(_EMPTY)

    def _embedding(self, read: TokenizedPrompt) -> Tensor:
        key = CacheKey(
            model=self._instance.spec.name,
            component="text",
            weights_version=self._instance.weights_version,
            inputs=(" ".join(map(str, read.ids)),),
            precision=str(self._instance.dtype),
        )
        text_T = self._instance.encodings.get(key)
        if text_T is None:
            text_T = self._nets.embed([read])[0]
            self._instance.encodings.put(key, text_T)
        return text_T
