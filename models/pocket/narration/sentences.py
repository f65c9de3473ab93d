"""What the narrator says: sentences made of facts, and the facts read back from sentences.

One form for each thing to say, so that the same facts always make the same words.
"""

import re

from reverie.models.pocket.narration.facts import (
    Direction,
    Does,
    Fact,
    IsBiome,
    IsHour,
    Lacks,
    Lies,
    Truth,
    Unreadable,
)
from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.simulator.terrain import Tile
from reverie.models.pocket.simulator.walker import Facing

LANDS: dict[Biome, str] = {
    Biome.MEADOW: "a green meadow",
    Biome.SNOW: "a snowy land",
    Biome.DESERT: "a sandy desert",
    Biome.AUTUMN: "an autumn forest",
    Biome.SWAMP: "a murky swamp",
    Biome.VOLCANO: "a volcanic land",
    Biome.NEON: "a neon city",
    Biome.CANDY: "a candy land",
}
HOURS: dict[Hour, str] = {Hour.DAY: "day", Hour.DUSK: "dusk", Hour.NIGHT: "night"}
WHEN: dict[Hour, str] = {Hour.DAY: "by day", Hour.DUSK: "at dusk", Hour.NIGHT: "at night"}
THINGS: dict[Tile, str] = {
    Tile.WATER: "water",
    Tile.SHORE: "the shore",
    Tile.GROUND: "open ground",
    Tile.TREE: "a tree",
    Tile.ROCK: "a rock",
    Tile.FLOWER: "flowers",
    Tile.PATH: "a path",
    Tile.HOUSE: "a house",
}
BARE: dict[Tile, str] = {t: n.removeprefix("a ").removeprefix("the ") for t, n in THINGS.items()}
SIDES: dict[Direction, str] = {
    Direction.LEFT: "to the left",
    Direction.RIGHT: "to the right",
    Direction.UP: "above",
    Direction.DOWN: "below",
}
FACINGS: dict[Facing, str] = {
    Facing.DOWN: "down",
    Facing.UP: "up",
    Facing.LEFT: "left",
    Facing.RIGHT: "right",
}
COUNTS = ("one tile", "two tiles", "three tiles")
NOWHERE = "in a straight line"


def say_place(truth: Truth) -> str:
    """Name biome and hour."""
    return f"this is {LANDS[truth.biome]} {WHEN[truth.hour]}."


def say_biome(biome: Biome) -> str:
    """Name the biome alone."""
    return f"this is {LANDS[biome]}."


def say_hour(hour: Hour) -> str:
    """Name the hour alone."""
    return f"it is {HOURS[hour]}."


def say_doing(truth: Truth) -> str:
    """Say whether the walker walks, and which way he looks."""
    return f"you {'walk' if truth.walks else 'stand and look'} {FACINGS[truth.facing]}."


def say_side(truth: Truth, direction: Direction) -> str:
    """List what lies in a direction, nearest first."""
    things = ", then ".join(THINGS[kind] for kind in truth.runs(direction))
    return f"{SIDES[direction]} i see {things}."


def say_lies(fact: Lies) -> str:
    """Say where something lies."""
    assert fact.distance is not None, "what is said to lie somewhere has a distance"
    return f"i see {THINGS[fact.kind]} {COUNTS[fact.distance - 1]} {SIDES[fact.direction]}."


def say_lacks(fact: Lacks) -> str:
    """Say that a kind of tile is absent."""
    where = NOWHERE if fact.direction is None else SIDES[fact.direction]
    return f"i see no {BARE[fact.kind]} {where}."


def _named(names: dict[str, object]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


_BIOME = {name: biome for biome, name in LANDS.items()}
_HOUR = {name: hour for hour, name in HOURS.items()}
_WHEN = {name: hour for hour, name in WHEN.items()}
_THING = {name: tile for tile, name in THINGS.items()}
_BARE = {name: tile for tile, name in BARE.items()}
_SIDE = {name: direction for direction, name in SIDES.items()}
_FACING = {name: facing for facing, name in FACINGS.items()}
_PLACE = re.compile(rf"this is (?P<land>{_named({**_BIOME})})(?: (?P<when>{_named({**_WHEN})}))?")
_TIME = re.compile(rf"it is (?P<hour>{_named({**_HOUR})})")
_DOING = re.compile(rf"you (?P<how>walk|stand and look) (?P<way>{_named({**_FACING})})")
_LINE = re.compile(
    rf"(?P<side>{_named({**_SIDE})}) i see "
    rf"(?P<things>(?:{_named({**_THING})})(?:, then (?:{_named({**_THING})}))*)"
)
_SPOT = re.compile(
    rf"i see (?P<thing>{_named({**_THING})}) (?P<count>{'|'.join(COUNTS)}) "
    rf"(?P<side>{_named({**_SIDE})})"
)
_NONE = re.compile(
    rf"i see no (?P<bare>{_named({**_BARE})}) (?P<where>{NOWHERE}|{_named({**_SIDE})})"
)
_REPLY = re.compile(r"^(yes|no), ")


def facts(text: str) -> tuple[Fact, ...]:
    """Read the facts that a text states, in order; case does not matter.

    A sentence without a fact is `Unreadable`. A leading yes or no is not a fact: see
    `questions.WorldQuestion.answered`.
    """
    stated: list[Fact] = []
    for sentence in text.lower().split("."):
        if sentence.strip():
            stated.extend(_read(_REPLY.sub("", sentence.strip())))
    return tuple(stated)


def _read(sentence: str) -> tuple[Fact, ...]:
    if found := _PLACE.fullmatch(sentence):
        named = IsBiome(_BIOME[found["land"]])
        return (named, IsHour(_WHEN[found["when"]])) if found["when"] else (named,)
    if found := _TIME.fullmatch(sentence):
        return (IsHour(_HOUR[found["hour"]]),)
    if found := _DOING.fullmatch(sentence):
        return (Does(found["how"] == "walk", _FACING[found["way"]]),)
    if found := _LINE.fullmatch(sentence):
        first, *rest = (_THING[name] for name in found["things"].split(", then "))
        side = _SIDE[found["side"]]
        return (Lies(first, side, 1), *(Lies(kind, side, None) for kind in rest))
    if found := _SPOT.fullmatch(sentence):
        distance = COUNTS.index(found["count"]) + 1
        return (Lies(_THING[found["thing"]], _SIDE[found["side"]], distance),)
    if found := _NONE.fullmatch(sentence):
        return (Lacks(_BARE[found["bare"]], _SIDE.get(found["where"])),)
    return (Unreadable(sentence),)
