"""Captions: a grammar of texts over biome and hour, and its reading.

A caption can name both or one of them (the other stays the same), or consist of several clauses
("a frozen lake land; now it is night"), of which the last wins. The empty caption changes nothing.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np

from reverie.models.pocket.simulator.biomes import Biome, Hour

_LANDS: dict[Biome, tuple[str, ...]] = {
    Biome.MEADOW: (
        "a green meadow", "grassland", "a grassy plain", "green fields", "meadows and groves",
        "a lush pasture", "quiet countryside",
    ),
    Biome.SNOW: (
        "a frozen lake land", "snowy country", "an icy tundra", "a winter land", "snow and ice",
        "an arctic wilderness", "a frozen wasteland",
    ),
    Biome.DESERT: (
        "a sandy desert", "dunes and cactus", "an oasis in the desert", "a dry sandy waste",
        "a hot desert", "sand dunes",
    ),
    Biome.AUTUMN: (
        "an autumn forest", "red and orange woods", "a land of fallen leaves", "autumn country",
        "fall foliage", "a maple wood",
    ),
    Biome.SWAMP: (
        "a murky swamp", "a bog", "marshland", "a damp mossy marsh", "muddy wetlands",
        "a jungle bayou",
    ),
    Biome.VOLCANO: (
        "a volcanic land", "lava and ash", "a burnt volcano", "a land of fire", "rivers of lava",
        "an inferno", "a volcanic wasteland",
    ),
    Biome.NEON: (
        "a neon city", "a cyberpunk town", "glowing neon streets", "a futuristic city",
        "electric towers", "a city of neon lights", "a science fiction metropolis",
    ),
    Biome.CANDY: (
        "a candy land", "a pink sugar world", "lollipop country", "a sweet candy kingdom",
        "cotton sugar hills", "a land of sweets", "a bubblegum world",
    ),
}  # fmt: skip
_WHEN: dict[Hour, tuple[str, ...]] = {
    Hour.DAY: (
        "by day",
        "in daylight",
        "at noon",
        "in the morning",
        "in the daytime",
        "in sunshine",
    ),
    Hour.DUSK: ("at dusk", "at sunset", "in the evening", "at twilight"),
    Hour.NIGHT: (
        "at night",
        "after dark",
        "at midnight",
        "under the stars",
        "in moonlight",
        "by night",
        "in the dark",
    ),
}
_HOURS_ADJECTIVES: dict[Hour, tuple[str, ...]] = {
    Hour.DAY: ("sunlit", "bright", "sunny"),
    Hour.DUSK: ("dusky", "twilight"),
    Hour.NIGHT: ("moonlit", "dark"),
}
_HOUR_CLAUSES: dict[Hour, tuple[str, ...]] = {
    Hour.DAY: (
        "now it is day", "the sun rises", "morning comes", "make it day", "day", "let it be day",
    ),
    Hour.DUSK: (
        "now it is dusk", "now it is evening", "the sun sets", "sunset", "make it dusk", "dusk",
        "let it be evening",
    ),
    Hour.NIGHT: ("now it is night", "night falls", "it is getting dark", "make it night", "night",
        "let it be night"),
}  # fmt: skip
_LAND_CLAUSES = (
    "{land}", "now it is {land}", "turn into {land}", "the land becomes {land}",
    "now we are in {land}", "change to {land}", "make it {land}", "it becomes {land}",
    "go to {land}", "show me {land}",
)  # fmt: skip
_WHOLE = (
    "{land} {when}", "{land}, {when}", "{when}, {land}", "walking through {land} {when}",
    "a world of {land} {when}", "a picture of {land} {when}", "{land}; {clause}",
    "now it is {hour} in {land}",
)  # fmt: skip
_FILLERS = ("under", "after", "getting", "comes", "fall", "then")
_JOINTS = ("; ", ". ", ", then ", "; then ")


@dataclass(frozen=True, slots=True)
class Caption:
    """A text, and the biome and hour that it names; None where it names none."""

    text: str
    biome: Biome | None
    hour: Hour | None


def _pick(rng: np.random.Generator, choices: tuple[str, ...]) -> str:
    return choices[int(rng.integers(len(choices)))]


def whole_caption(rng: np.random.Generator, biome: Biome, hour: Hour) -> Caption:
    """Draw a text that names both the biome and the hour."""
    land = _pick(rng, _LANDS[biome])
    if rng.random() < 0.2:
        first, _, rest = land.partition(" ")
        adjective = _pick(rng, _HOURS_ADJECTIVES[hour])
        text = f"a {adjective} {rest}" if first in ("a", "an") else f"{adjective} {land}"
        return Caption(text, biome, hour)
    text = _pick(rng, _WHOLE).format(
        land=land,
        when=_pick(rng, _WHEN[hour]),
        clause=_pick(rng, _HOUR_CLAUSES[hour]),
        hour=hour.name.lower(),
    )
    return Caption(text, biome, hour)


def biome_caption(rng: np.random.Generator, biome: Biome) -> Caption:
    """Draw a text that names only the biome."""
    text = _pick(rng, _LAND_CLAUSES).format(land=_pick(rng, _LANDS[biome]))
    return Caption(text, biome, None)


def hour_caption(rng: np.random.Generator, hour: Hour) -> Caption:
    """Draw a text that names only the hour."""
    return Caption(_pick(rng, (*_HOUR_CLAUSES[hour], *_WHEN[hour])), None, hour)


def caption_for(rng: np.random.Generator, biome: Biome | None, hour: Hour | None) -> Caption:
    """Draw a text that names exactly what is not None."""
    if biome is not None and hour is not None:
        return whole_caption(rng, biome, hour)
    if biome is not None:
        return biome_caption(rng, biome)
    if hour is not None:
        return hour_caption(rng, hour)
    return Caption("", None, None)


def append_caption(rng: np.random.Generator, old: Caption, new: Caption) -> Caption:
    """Join two captions; what the new one names replaces what the old one named."""
    if not old.text or not new.text:
        return new if new.text else old
    return Caption(
        old.text + _pick(rng, _JOINTS) + new.text,
        old.biome if new.biome is None else new.biome,
        old.hour if new.hour is None else new.hour,
    )


def reminder(biome: Biome | None, hour: Hour | None) -> str:
    """Name a biome, an hour, or both, in plain words; what is None is left out."""
    land = "" if biome is None else _LANDS[biome][0]
    when = "" if hour is None else _WHEN[hour][0]
    return f"{land} {when}".strip()


def reminded(caption: Caption, biome: Biome, hour: Hour) -> Caption:
    """Put a reminder of what a caption does not name before it, as a session does."""
    kept = reminder(
        biome if caption.biome is None else None, hour if caption.hour is None else None
    )
    return Caption(
        f"{kept} {caption.text}".strip(),
        biome if caption.biome is None else caption.biome,
        hour if caption.hour is None else caption.hour,
    )


def words_of(text: str) -> list[str]:
    """Split a text into words: lower case, no punctuation."""
    kept = "".join(c if c.isalnum() else " " for c in text.lower().replace("'", ""))
    return kept.split()


def grammar_words() -> list[str]:
    """Return every word that the grammar can write, sorted."""
    tables = (*_LANDS.values(), *_WHEN.values(), *_HOURS_ADJECTIVES.values())
    sentences = [p for table in (*tables, *_HOUR_CLAUSES.values()) for p in table]
    sentences += [t.format(land="", when="", clause="", hour="") for t in (*_WHOLE, *_LAND_CLAUSES)]
    return sorted({word for phrase in (*sentences, *_JOINTS) for word in words_of(phrase)})


@cache
def _telling_words() -> tuple[dict[str, Biome], dict[str, Hour]]:
    """Find the words that only one biome, or only one hour, uses."""
    lands = {b: {w for p in sentences for w in words_of(p)} for b, sentences in _LANDS.items()}
    hours = {
        h: {w for p in (*_WHEN[h], *_HOURS_ADJECTIVES[h], *_HOUR_CLAUSES[h]) for w in words_of(p)}
        for h in Hour
    }
    frames = [t.format(land="", when="", clause="", hour="") for t in (*_WHOLE, *_LAND_CLAUSES)]
    uses = Counter(word for own in (*lands.values(), *hours.values()) for word in own)
    uses.update(words_of(" ".join((*frames, *_FILLERS))))
    biome_of = {w: b for b, own in lands.items() for w in own if uses[w] == 1}
    hour_of = {w: h for h, own in hours.items() for w in own if uses[w] == 1}
    return biome_of, hour_of


def read_caption(text: str) -> Caption:
    """Read which biome and hour a text names; the last naming wins, None when there is none."""
    biome_of, hour_of = _telling_words()
    biome: Biome | None = None
    hour: Hour | None = None
    for word in words_of(text):
        biome = biome_of.get(word, biome)
        hour = hour_of.get(word, hour)
    return Caption(text, biome, hour)
