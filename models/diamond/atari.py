"""The actions of Atari agents: each game's minimal action set, and the keys of each action.

Agents were trained with a game's minimal action set, so the same number is another action in every
game: 2 is right in Pong and up in Freeway. The sets are those of the Arcade Learning Environment
(ale-py 0.12.1, `getMinimalActionSet`), for the 26 games of Atari 100k.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

PRIMITIVES = ("fire", "up", "right", "left", "down")
_PARTS = re.compile("up|down|left|right|fire")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_SIDES = "upright upleft downright downleft"
_ALL = (
    f"fire up right left down {_SIDES} upfire rightfire leftfire downfire "
    "uprightfire upleftfire downrightfire downleftfire"
)
_MOVES = f"up right left down {_SIDES}"
_PADDLE = "fire right left rightfire leftfire"

ACTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        game: ("noop", *actions.split())
        for game, actions in {
            "Alien": _ALL,
            "Amidar": "fire up right left down upfire rightfire leftfire downfire",
            "Assault": "fire up right left rightfire leftfire",
            "Asterix": _MOVES,
            "BankHeist": _ALL,
            "BattleZone": _ALL,
            "Boxing": _ALL,
            "Breakout": "fire right left",
            "ChopperCommand": _ALL,
            "CrazyClimber": _MOVES,
            "DemonAttack": _PADDLE,
            "Freeway": "up down",
            "Frostbite": _ALL,
            "Gopher": "fire up right left upfire rightfire leftfire",
            "Hero": _ALL,
            "Jamesbond": _ALL,
            "Kangaroo": _ALL,
            "Krull": _ALL,
            "KungFuMaster": (
                "up right left down downright downleft rightfire leftfire downfire "
                "uprightfire upleftfire downrightfire downleftfire"
            ),
            "MsPacman": _MOVES,
            "Pong": _PADDLE,
            "PrivateEye": _ALL,
            "Qbert": "fire up right left down",
            "RoadRunner": _ALL,
            "Seaquest": _ALL,
            "UpNDown": "fire up down upfire downfire",
        }.items()
    }
)
"""The names of each game's actions, in the order of their numbers."""

FULL = ("noop", *_ALL.split())
"""All actions of a joystick. No other set has as many."""


def game_called(name: str) -> str | None:
    """Return the game in a name such as `Pong`, `bank_heist` or `PongNoFrameskip-v4`.

    None is returned when the name contains no game of `ACTIONS`, or several.
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    runs = {
        "".join(words[first:last])
        for first in range(len(words))
        for last in range(first + 1, len(words) + 1)
    }
    found = [game for game in ACTIONS if game.lower() in runs]
    return found[0] if len(found) == 1 else None


def numbered(count: int) -> tuple[str, ...]:
    """Return names for `count` unknown actions: a key for each number."""
    return ("noop", *(str(number) for number in range(1, count)))


def keys_of(actions: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys for these actions; combinations have no keys of their own."""
    needed = set[str]().union(*map(presses_of, actions))
    return tuple(key for key in PRIMITIVES if key in needed) or actions[1:]


def presses_of(action: str) -> frozenset[str]:
    """Return the keys that are down together for an action: none for `noop`."""
    if action == "noop":
        return frozenset()
    return frozenset(_PARTS.findall(action)) or frozenset({action})
