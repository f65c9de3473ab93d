"""How pocket encodes a prompt: after a reminder of the biome and hour that it does not name.

Without it, only the pixels would carry the colours for as long as no prompt names them.
"""

from reverie.models.pocket.network.vocabulary import TokenizedPrompt, Vocabulary
from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.simulator.captions import read_caption, reminder


def read_prompt(
    vocabulary: Vocabulary, prompt: str, biome: Biome | None, hour: Hour | None
) -> TokenizedPrompt:
    """Return the words of a prompt, after a reminder of the biome and hour that it leaves open."""
    named = read_caption(prompt)
    kept = reminder(biome if named.biome is None else None, hour if named.hour is None else None)
    return vocabulary.remind(vocabulary.encode(prompt), kept)
