"""Converts controls to actions of the network."""

import torch
from torch import Tensor

from reverie.models.contract.controls import (
    Controls,
    ControlSpec,
    Drag,
    KeyInput,
    Merge,
    ParameterSpec,
)
from reverie.models.diamond.atari import presses_of
from reverie.models.diamond.config import MOUSE_X, MOUSE_Y, GameConfig

KEYS = "play"
QUALITY = "quality"
"""The parameter that chooses between a game's samplers: 0 the fast, 1 the fine."""

AXES = {"mouse_x": MOUSE_X, "mouse_y": MOUSE_Y}
DRAGS = {"mouse_x": Drag.X, "mouse_y": Drag.Y}
BINDINGS = {
    "fire": ("Space",),
    "space": ("Space",),
    "shift": ("ShiftLeft", "ShiftRight"),
    "ctrl": ("KeyC",),  # with Ctrl, W would close the browser tab, which a page cannot prevent
    "left_click": ("MouseLeft",),
    "right_click": ("MouseRight",),
}


def control_specs(game: GameConfig) -> tuple[ControlSpec, ...]:
    """Return the controls of a game."""
    bindings = {key: BINDINGS[key] for key in game.keys if key in BINDINGS}
    keys = ControlSpec(KEYS, Merge.EDGES, keys=game.keys, label="Keys", bindings=bindings)
    if not game.world.multi_hot:
        return (keys,)
    axes = (
        ControlSpec(axis, Merge.SUM, low=places[0], high=places[-1], label=axis, drag=DRAGS[axis])
        for axis, places in AXES.items()
    )
    return (keys, *axes)


def parameter_specs(game: GameConfig) -> tuple[ParameterSpec, ...]:
    """Return the parameters of a game."""
    if game.fine is None:
        return ()
    return (ParameterSpec(QUALITY, 0, 0, 1, integer=True, label="Quality: 0 fast, 1 fine"),)


def idle_action(game: GameConfig) -> Tensor:
    """Return the action of doing nothing."""
    return action_of(Controls(), game)


def action_of(controls: Controls, game: GameConfig) -> Tensor:
    """Return the id of the action, or a row of 0 and 1 where several may be on."""
    keys = controls.keys.get(KEYS, KeyInput())
    if not game.world.multi_hot:
        return torch.tensor(_single(keys, game))
    pressed = _pressed(keys, game)
    row = [float(key in pressed) for key in game.keys]
    for axis, places in AXES.items():
        moved = controls.axes.get(axis, 0.0)
        nearest = min(places, key=lambda place: abs(place - moved))
        row += [float(place == nearest) for place in places]
    return torch.tensor(row)


def _single(keys: KeyInput, game: GameConfig) -> int:
    """Return the one action of the pressed keys: 0 when there is none.

    A tap has precedence, because the next step does not see it; then the newest press. A key is
    ignored when the game has no action that combines it with those before it.
    """
    first_to_last = [*_taps(keys), *reversed(keys.held)]
    presses = [presses_of(action) for action in game.actions]
    chosen = frozenset[str]()
    for key in first_to_last:
        wider = chosen | {key}
        if any(wider <= each <= set(first_to_last) for each in presses):
            chosen = wider
    return presses.index(chosen) if chosen in presses else 0


def _pressed(keys: KeyInput, game: GameConfig) -> set[str]:
    """Return the keys that are held or were tapped; of opposite keys the first one counts."""
    pressed: set[str] = set()
    for key in (*keys.held, *_taps(keys)):
        if not any(pair <= pressed | {key} for pair in game.opposites if key in pair):
            pressed.add(key)
    return pressed


def _taps(keys: KeyInput) -> list[str]:
    return [edge.key for edge in keys.edges if edge.down and edge.key not in keys.held]
