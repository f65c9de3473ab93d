"""Tools for a language model that plays: `set_scene`, `move` and `look`.

Only the program knows its keys and axes, so an unknown direction is answered with the known ones: a
model tries again with one of them.
"""

from collections.abc import Mapping
from typing import Protocol

from livekit.agents import ToolError, function_tool
from livekit.agents.llm import Tool, Toolset

LONGEST_S = 10.0
"""The longest time that one call holds a key."""

MEANINGS: Mapping[str, tuple[str, ...]] = {
    "forward": ("forward", "up", "w"),
    "backward": ("backward", "back", "down", "s"),
    "up": ("up", "w", "forward", "jump"),
    "down": ("down", "s", "backward", "back"),
    "left": ("left", "a"),
    "right": ("right", "d"),
}
"""Keys that may mean a direction, best first."""

TURNS: Mapping[str, tuple[tuple[str, ...], float]] = {
    "left": (("x", "yaw", "pan"), -1.0),
    "right": (("x", "yaw", "pan"), 1.0),
    "up": (("y", "pitch", "tilt"), -1.0),
    "down": (("y", "pitch", "tilt"), 1.0),
}
"""Endings of the names of axes that turn the view, and the direction."""


class PlayableWorld(Protocol):
    """A world as the tools see it. Each refusal is a `ToolError`."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that the program takes."""

    @property
    def axes(self) -> Mapping[str, tuple[float, float]]:
        """The range of every axis that it takes."""

    def describe(self) -> str:
        """Return a description of the scene."""

    async def set_scene(self, text: str) -> str:
        """Send a prompt; return its result in words."""

    async def hold(self, key: str, seconds: float) -> None:
        """Hold a key for some seconds."""

    async def turn(self, axis: str, amount: float) -> None:
        """Move an axis."""


def world_tools(world: PlayableWorld) -> list[Tool | Toolset]:
    """Return the tools with which a language model plays in a world."""

    @function_tool
    async def set_scene(description: str) -> str:
        """Change what the world is. Describe the whole scene: the old one is not kept.

        Args:
            description: the scene in one short plain sentence, such as "a forest at night".
        """
        return await world.set_scene(description)

    @function_tool
    async def move(direction: str, seconds: float = 1.0) -> str:
        """Move through the world by holding a key. Returns when that is done.

        Args:
            direction: forward, backward, left, right, up, down, or the name of a key.
            seconds: for how long, up to 10.
        """
        key = key_for(direction, world.keys)
        seconds = min(max(seconds, 0.1), LONGEST_S)
        await world.hold(key, seconds)
        return f"Moved {direction} for {seconds:g} seconds. {world.describe()}"

    @function_tool
    async def look(direction: str = "around") -> str:
        """See where you are, after turning the view if a direction is given.

        Args:
            direction: around to turn nothing, or left, right, up, down.
        """
        if direction.strip().lower() != "around":
            axis, amount = turn_for(direction, world.axes)
            await world.turn(axis, amount)
        return world.describe()

    return [set_scene, move, look]


def key_for(direction: str, keys: tuple[str, ...]) -> str:
    """Return the key that a direction means.

    Raises:
        ToolError: no key has this meaning; names the known keys.
    """
    wanted = direction.strip().lower()
    spelt = {key.lower(): key for key in keys}
    for name in (wanted, *MEANINGS.get(wanted, ())):
        if name in spelt:
            return spelt[name]
    known = ", ".join(keys)
    raise ToolError(
        f"There is no way to move {direction[:40]!r}. Known: {known}."
        if keys
        else "This world has no movement; only its scene can be changed."
    )


def turn_for(direction: str, axes: Mapping[str, tuple[float, float]]) -> tuple[str, float]:
    """Return the axis that turns the view in a direction, and how far.

    Raises:
        ToolError: no axis does.
    """
    endings, way = TURNS.get(direction.strip().lower(), ((), 0.0))
    for name, (low, high) in axes.items():
        if name.lower().endswith(endings):
            return name, low if way < 0 else high
    raise ToolError(
        f"The view cannot be turned {direction[:40]!r} here; move, or look around."
        if endings
        else f"{direction[:40]!r} is no direction to look in: around, left, right, up or down."
    )
