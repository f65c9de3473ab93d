"""How pocket reads a prompt: behind what is in force already and the prompt does not name.

Pixels alone would have to carry the colours otherwise, for as long as nobody names them.
"""

from reverie.models.pocket.network.vocabulary import TokenizedPrompt, Vocabulary
from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.simulator.captions import read_caption, reminder


def read_prompt(
    vocabulary: Vocabulary, prompt: str, biome: Biome | None, hour: Hour | None
) -> TokenizedPrompt:
    """Return the words of a prompt, with a reminder of the biome and hour that it leaves as is."""
    named = read_caption(prompt)
    kept = reminder(biome if named.biome is None else None, hour if named.hour is None else None)
    return vocabulary.remind(vocabulary.encode(prompt), kept)
