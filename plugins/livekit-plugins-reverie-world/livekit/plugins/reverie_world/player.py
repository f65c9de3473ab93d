"""A world as the tools of a language model see it: keys, axes, a description, actions."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from livekit.agents import ToolError

if TYPE_CHECKING:
    from reverie.rtc.livekit import RoomBridge

RECEIPT_S = 5.0
"""Limit for the receipt, which names words that the model does not know."""


class Player:
    """Plays in the world of a bridge. Each refusal is a `ToolError`."""

    def __init__(self, bridge: "Callable[[], RoomBridge | None]") -> None:
        """Create it; `bridge` returns the current world, or None."""
        self._bridge = bridge

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that the program takes."""
        return tuple(key for each in self._world.session.view.controls for key in each.keys)

    @property
    def axes(self) -> Mapping[str, tuple[float, float]]:
        """The range of every axis that it takes."""
        controls = self._world.session.view.controls
        return {each.name: (each.low, each.high) for each in controls if not each.keys}

    def describe(self) -> str:
        """Return a description of the scene."""
        world = self._world
        view = world.session.view
        parts = [f"The scene is: {view.prompt}." if view.prompt else "The scene is not described."]
        if world.heard:
            parts.append(f"The world says: {world.heard.strip()}")
        if world.driver is not None:
            parts.append(f"{world.driver} steers by hand.")
        return " ".join(parts)

    async def set_scene(self, text: str) -> str:
        """Send a prompt; return its result in words."""
        world = self._world
        control = await _asked(world.say(text))
        receipt = await world.receipt(control, RECEIPT_S)
        if receipt is None or receipt.type != "control.applied":
            return "The scene will change soon."
        if receipt.unknown_words:
            unknown = ", ".join(receipt.unknown_words)
            return f"The scene changes, but the world does not know: {unknown}."
        return "The scene changes."

    async def hold(self, key: str, seconds: float) -> None:
        """Hold a key for some seconds, and always release it."""
        world = self._world
        control = next(each.name for each in world.session.view.controls if key in each.keys)
        await _asked(world.act({control: key}, "press"))
        try:
            await asyncio.sleep(seconds)
        finally:
            await _asked(world.act({control: key}, "release"))

    async def turn(self, axis: str, amount: float) -> None:
        """Move an axis."""
        await _asked(self._world.act({axis: amount}))

    @property
    def _world(self) -> "RoomBridge":
        world = self._bridge()
        if world is None:
            raise ToolError("There is no world at the moment.")
        return world


async def _asked(asking: Awaitable[str]) -> str:
    from reverie.rtc.livekit import InputRefusedError  # loaded already, because there is a bridge

    try:
        return await asking
    except InputRefusedError as refusal:
        raise ToolError(f"The world refuses: {refusal.message}") from None
