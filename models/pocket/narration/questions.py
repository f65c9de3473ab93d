"""Questions of viewers, their answers from the truth, and whether an answer is right."""

from dataclasses import dataclass

import numpy as np

from reverie.models.pocket.narration.facts import (
    DIRECTION_OF,
    Direction,
    Does,
    Fact,
    IsBiome,
    IsHour,
    Lacks,
    Lies,
    Truth,
)
from reverie.models.pocket.narration.sentences import (
    facts,
    say_biome,
    say_doing,
    say_hour,
    say_lacks,
    say_lies,
    say_place,
    say_side,
)
from reverie.models.pocket.simulator.biomes import Biome, Hour
from reverie.models.pocket.simulator.terrain import Tile

_BIOME = (
    "which biome is this", "what biome is this", "which biome am i in", "where am i",
    "where are we", "what kind of land is this", "what land is this", "which land is this",
    "what kind of place is this", "what place is this", "which country is this",
)  # fmt: skip
_HOUR = (
    "what time is it", "what time of day is it", "which time of day is it", "what is the time",
    "how late is it", "what hour is it", "is it day or night", "tell me the time",
)  # fmt: skip
_DOING = (
    "what am i doing", "what do i do", "what is the walker doing", "am i walking", "am i moving",
    "am i standing", "which way do i look", "where am i looking", "which way am i facing",
    "where am i going", "which way do i go", "what does the walker do",
)  # fmt: skip
_PLACE = (
    "what do you see", "describe what you see", "describe this place", "describe the world",
    "tell me about this place", "what is this", "what does it look like", "what is here",
)  # fmt: skip
_AHEAD = (
    "what is in front of me", "what is ahead", "what lies ahead", "what is ahead of me",
    "what do i look at", "what am i looking at",
)  # fmt: skip
_SIDE = (
    "what is {side}", "what lies {side}", "what do you see {side}", "what is there {side}",
    "what do i see {side}", "what can you see {side}", "tell me what is {side}",
)  # fmt: skip
_WHERE = (
    "where is {thing}", "where do i find {thing}", "where can i find {thing}",
    "which way to {thing}", "where do you see {thing}", "which way is {thing}",
)  # fmt: skip
_NEAR = (
    "how near is {thing}", "how far is {thing}", "how close is {thing}",
    "how far away is {thing}", "how far to {thing}",
)  # fmt: skip
_ANY = (
    "is there {any}", "do you see {any}", "can you see {any}", "is there {any} near",
    "is there {any} here", "is there {any} close by", "is {any} near", "are there {any}",
)  # fmt: skip
_ANY_SIDE = ("is there {any} {side}", "do you see {any} {side}", "is {any} {side}")
_IS_HOUR = ("is it {hour}", "is it {hour} now", "is it {hour} here")
_IS_BIOME = ("is this {land}", "am i in {land}", "are we in {land}", "is it {land}")

_THING_NAMES: dict[Tile, tuple[str, ...]] = {
    Tile.WATER: ("water", "lake", "river", "sea"),
    Tile.SHORE: ("shore", "beach", "bank", "sand"),
    Tile.GROUND: ("ground", "open ground", "free ground", "grass"),
    Tile.TREE: ("tree", "trees", "wood"),
    Tile.ROCK: ("rock", "rocks", "stone", "stones", "boulder"),
    Tile.FLOWER: ("flower", "flowers", "blossoms"),
    Tile.PATH: ("path", "road", "trail", "street"),
    Tile.HOUSE: ("house", "houses", "hut", "building", "home"),
}
_SIDE_NAMES: dict[Direction, tuple[str, ...]] = {
    Direction.LEFT: ("to the left", "on the left", "to my left", "on my left", "left of me",
                     "left", "to the west", "in the west", "on the left side"),
    Direction.RIGHT: ("to the right", "on the right", "to my right", "on my right", "right of me",
                      "right", "to the east", "in the east", "on the right side"),
    Direction.UP: ("above", "above me", "up", "to the north", "in the north", "further up"),
    Direction.DOWN: ("below", "below me", "down", "to the south", "in the south", "further down"),
}  # fmt: skip
_HOUR_NAMES: dict[Hour, tuple[str, ...]] = {
    Hour.DAY: ("day", "daytime", "noon"),
    Hour.DUSK: ("dusk", "evening", "sunset"),
    Hour.NIGHT: ("night", "dark", "midnight"),
}
_LAND_NAMES: dict[Biome, tuple[str, ...]] = {
    Biome.MEADOW: ("a meadow", "a green meadow", "grassland"),
    Biome.SNOW: ("a snowy land", "snow", "a winter land", "the snow"),
    Biome.DESERT: ("a desert", "a sandy desert", "the desert"),
    Biome.AUTUMN: ("an autumn forest", "an autumn land", "autumn"),
    Biome.SWAMP: ("a swamp", "a murky swamp", "a marsh"),
    Biome.VOLCANO: ("a volcanic land", "a volcano", "a land of lava"),
    Biome.NEON: ("a city", "a neon city", "the city"),
    Biome.CANDY: ("a candy land", "candy land", "a land of sweets"),
}
_ASKED_AFTER_PRESENT = 0.55
ASKED_SHARES = (0.22, 0.25, 0.25, 0.13, 0.15)
"""Of questions about biome, hour or walker; a side; a thing; a thing on a side; yes or no."""


@dataclass(frozen=True, slots=True)
class WorldQuestion:
    """A question, its right answer, and what any right answer must say.

    Attributes:
        text: as a viewer types it, in lower case without a mark at its end.
        answer: the answer that the narrator is trained to give.
        reply: the yes or no that it must begin with; empty for other questions.
        about: facts of which a right answer states one.
    """

    text: str
    answer: str
    reply: str
    about: tuple[Fact, ...]

    def answered(self, text: str, truth: Truth) -> bool:
        """Tell whether `text` is a right answer: it answers the question, and all of it is true."""
        stated = facts(text)
        if self.reply and not text.lower().startswith(f"{self.reply},"):
            return False
        told = bool(set(stated) & set(self.about))
        return told and all(truth.holds(fact) for fact in stated)


def ask(
    rng: np.random.Generator, truth: Truth, shares: tuple[float, ...] = ASKED_SHARES
) -> WorldQuestion:
    """Draw a question about a world, with its answer; `shares` are those of the kinds."""
    makers = (_ask_whole, _ask_side, _ask_thing, _ask_thing_side, _ask_named)
    chosen = int(rng.choice(len(makers), p=shares))
    return makers[chosen](rng, truth)


def _pick(rng: np.random.Generator, choices: tuple[str, ...]) -> str:
    return choices[int(rng.integers(len(choices)))]


def _ask_whole(rng: np.random.Generator, truth: Truth) -> WorldQuestion:
    biome, hour = IsBiome(truth.biome), IsHour(truth.hour)
    does = Does(truth.walks, truth.facing)
    match int(rng.integers(4)):
        case 0:
            return WorldQuestion(_pick(rng, _BIOME), say_biome(truth.biome), "", (biome,))
        case 1:
            return WorldQuestion(_pick(rng, _HOUR), say_hour(truth.hour), "", (hour,))
        case 2:
            return WorldQuestion(_pick(rng, _DOING), say_doing(truth), "", (does,))
    return WorldQuestion(_pick(rng, _PLACE), say_place(truth), "", (biome,))


def _ask_side(rng: np.random.Generator, truth: Truth) -> WorldQuestion:
    if rng.random() < 0.15:
        direction, text = DIRECTION_OF[truth.facing], _pick(rng, _AHEAD)
    else:
        direction = Direction(int(rng.integers(len(Direction))))
        text = _pick(rng, _SIDE).format(side=_pick(rng, _SIDE_NAMES[direction]))
    first = Lies(truth.lines[direction][0], direction, 1)
    return WorldQuestion(text, say_side(truth, direction), "", (first,))


def _draw_kind(rng: np.random.Generator, truth: Truth, lines: tuple[tuple[Tile, ...], ...]) -> Tile:
    """Draw a kind of tile to ask for, often one that exists there."""
    if rng.random() < _ASKED_AFTER_PRESENT:
        present = sorted({kind for line in lines for kind in line})
        return present[int(rng.integers(len(present)))]
    return Tile(int(rng.integers(len(Tile))))


def _any(rng: np.random.Generator, kind: Tile) -> str:
    name = _pick(rng, _THING_NAMES[kind])
    return _pick(rng, (name, f"a {name}", f"any {name}"))


def _ask_thing(rng: np.random.Generator, truth: Truth) -> WorldQuestion:
    kind = _draw_kind(rng, truth, truth.lines)
    name, nearest = _pick(rng, _THING_NAMES[kind]), truth.nearest(kind)
    lacks = Lacks(kind, None)
    answer = say_lacks(lacks) if nearest is None else say_lies(nearest)
    anywhere: tuple[Fact, ...] = (lacks,)
    if nearest is not None:
        anywhere = tuple(
            Lies(kind, direction, distance + 1)
            for direction in Direction
            for distance, found in enumerate(truth.lines[direction])
            if found == kind
        )
    how = rng.random()
    if how < 0.4:
        text = _pick(rng, _ANY).format(any=_any(rng, kind))
        reply = "no" if nearest is None else "yes"
        return WorldQuestion(text, f"{reply}, {answer}", reply, anywhere)
    thing = _pick(rng, (name, f"the {name}", f"the next {name}"))
    if how < 0.7:
        return WorldQuestion(_pick(rng, _WHERE).format(thing=thing), answer, "", anywhere)
    if nearest is not None:
        anywhere = tuple(
            f for f in anywhere if isinstance(f, Lies) and f.distance == nearest.distance
        )
    return WorldQuestion(_pick(rng, _NEAR).format(thing=thing), answer, "", anywhere)


def _ask_thing_side(rng: np.random.Generator, truth: Truth) -> WorldQuestion:
    direction = Direction(int(rng.integers(len(Direction))))
    line = truth.lines[direction]
    kind = _draw_kind(rng, truth, (line,))
    text = _pick(rng, _ANY_SIDE).format(
        any=_any(rng, kind), side=_pick(rng, _SIDE_NAMES[direction])
    )
    if kind not in line:
        lacks = Lacks(kind, direction)
        return WorldQuestion(text, f"no, {say_lacks(lacks)}", "no", (lacks,))
    lies = Lies(kind, direction, line.index(kind) + 1)
    places = tuple(Lies(kind, direction, n + 1) for n, found in enumerate(line) if found == kind)
    return WorldQuestion(text, f"yes, {say_lies(lies)}", "yes", places)


def _ask_named(rng: np.random.Generator, truth: Truth) -> WorldQuestion:
    right = rng.random() < 0.4
    if rng.random() < 0.4:
        hour = truth.hour if right else Hour(int(rng.integers(len(Hour))))
        reply = "yes" if hour == truth.hour else "no"
        text = _pick(rng, _IS_HOUR).format(hour=_pick(rng, _HOUR_NAMES[hour]))
        return WorldQuestion(text, f"{reply}, {say_hour(truth.hour)}", reply, (IsHour(truth.hour),))
    biome = truth.biome if right else Biome(int(rng.integers(len(Biome))))
    reply = "yes" if biome == truth.biome else "no"
    text = _pick(rng, _IS_BIOME).format(land=_pick(rng, _LAND_NAMES[biome]))
    return WorldQuestion(text, f"{reply}, {say_biome(truth.biome)}", reply, (IsBiome(truth.biome),))


def question_words() -> set[str]:
    """Return every word that `ask` can write."""
    templates = (
        *_BIOME, *_HOUR, *_DOING, *_PLACE, *_AHEAD, *_SIDE, *_WHERE, *_NEAR, *_ANY, *_ANY_SIDE,
        *_IS_HOUR, *_IS_BIOME, "a", "any", "the next",
    )  # fmt: skip
    bare = [t.format(side="", thing="", any="", hour="", land="") for t in templates]
    tables = (_THING_NAMES, _SIDE_NAMES, _HOUR_NAMES, _LAND_NAMES)
    named = [name for table in tables for names in table.values() for name in names]
    return {word for text in (*bare, *named) for word in text.split()}
