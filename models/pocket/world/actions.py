"""The walker's keys, and how controls act on the next frame."""

from dataclasses import replace

from reverie.models.contract.controls import Controls
from reverie.models.pocket.simulator.biomes import Action
from reverie.models.pocket.simulator.walker import FACING_OF
from reverie.models.pocket.world.state import PocketState

_ACTIONS = {"up": Action.UP, "down": Action.DOWN, "left": Action.LEFT, "right": Action.RIGHT}
MOVES = tuple(_ACTIONS)


def with_controls(state: PocketState, controls: Controls) -> PocketState:
    """Return the state after the controls act on the frame that begins."""
    moved = controls.keys["move"].acting() if "move" in controls.keys else None
    action = _ACTIONS[moved] if moved else Action.WAIT
    return replace(
        state,
        action=action,
        facing=FACING_OF.get(action, state.facing),
        steps=int(controls.parameters.get("steps", state.steps)),
        guidance=float(controls.parameters.get("guidance", state.guidance)),
    )
