"""The walker: 16 x 24 pixel sprites for four facings and two steps."""

from enum import IntEnum
from functools import cache

import numpy as np
from numpy.typing import NDArray

from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.simulator.tiles import draw

WALKER_WIDTH_PX = 16
WALKER_HEIGHT_PX = 24
TRANSPARENT = 255


class Facing(IntEnum):
    """Which way the walker looks."""

    DOWN = 0
    UP = 1
    LEFT = 2
    RIGHT = 3


FACING_OF: dict[Action, Facing] = {
    Action.UP: Facing.UP,
    Action.DOWN: Facing.DOWN,
    Action.LEFT: Facing.LEFT,
    Action.RIGHT: Facing.RIGHT,
}
STANCES = len(Action) + len(Facing)
"""Number of stances; see `stance_of`."""


def stance_of(action: Action, facing: Facing | None) -> int:
    """Return the stance, an input of the world model: a move, or a wait and which way he looks.

    When the walker stands still for long, only the pixels of his last frame show his facing, and
    pixels fade. None is an unknown facing: then the number is that of the action.
    """
    if action is not Action.WAIT or facing is None:
        return int(action)
    return len(Action) + int(facing)


def action_and_facing(stance: int) -> tuple[Action, Facing | None]:
    """Invert `stance_of`; a move gives the facing as well."""
    if stance >= len(Action):
        return Action.WAIT, Facing(stance - len(Action))
    return Action(stance), FACING_OF.get(Action(stance))


_FRONT = """
_____oooooo_____
___oohhhhhhoo___
__ohhhhhhhhhho__
__ohhhhhhhhhho__
_ohhhhhhhhhhhho_
_oooooooooooooo_
_osssssssssssso_
_ossoossssoosso_
_ossoossssoosso_
_osssssssssssso_
__osssssssssso__
__ooosssssssoo__
_occcoooooocco__
occcccccccccccco
occcccccccccccco
osscccccccccssco
_oocccccccccco__
__ohhhhhhhhhho__
"""
_BACK = """
_____oooooo_____
___oohhhhhhoo___
__ohhhhhhhhhho__
__ohhhhhhhhhho__
_ohhhhhhhhhhhho_
_ohhhhhhhhhhhho_
_ohhhhhhhhhhhho_
_ohhhhhhhhhhhho_
_ohhhhhhhhhhhho_
_ohhhhhhhhhhhho_
__oohhhhhhhhoo__
__oooooooooooo__
_occcccccccccco_
occcccccccccccco
occccchhhcccccco
ossccchhhcccssco
_oocccccccccco__
__ohhhhhhhhhho__
"""
_SIDE = """
_____oooooo_____
___oohhhhhhoo___
__ohhhhhhhhhho__
__ohhhhhhhhhho__
_ohhhhhhhhhhhho_
oooooooooohhhho_
ossssssssshhhho_
ossoosssssshhho_
ossoosssssshhho_
osssssssssshhoo_
_osssssssssooo__
__oossssssooo___
___occccccco____
__occccccccco___
__occcssccccco__
__occcssccccco__
___ocoooccccco__
___ohhhhhhhho___
"""
_LEGS_FRONT = """
__occccooccco___
__occccooccco___
__oooooooccco___
_______occcco___
_______oooooo___
________________
"""
_LEGS_SIDE = (
    """
___occccccco____
___occoooccco___
__occo__oocco___
__oooo___ooooo__
_ooooo___oooo___
________________
""",
    """
____occccco_____
____occccco_____
____oocccoo_____
_____occco______
____ooooo_______
________________
""",
)


def _sprite(body: str, legs: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.concatenate([draw(body, TRANSPARENT), legs])


@cache
def sprites() -> NDArray[np.uint8]:
    """Return palette indices, `TRANSPARENT` where the map shows: [facings, 2 steps, 24, 16]."""
    legs = draw(_LEGS_FRONT, TRANSPARENT)
    front = [_sprite(_FRONT, legs), _sprite(_FRONT, legs[:, ::-1])]
    back = [_sprite(_BACK, legs), _sprite(_BACK, legs[:, ::-1])]
    left = [_sprite(_SIDE, draw(text, TRANSPARENT)) for text in _LEGS_SIDE]
    right = [sprite[:, ::-1] for sprite in left]
    table = np.stack([np.stack(pair) for pair in (front, back, left, right)])
    table.setflags(write=False)
    return table
