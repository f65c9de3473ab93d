"""How the controls of a unit change a session's state."""

from dataclasses import replace

from reverie.models.contract.controls import Controls, MediaInput
from reverie.models.services.adapters import Adapters
from reverie.models.wan.state import OnPrompt, WanState


def taken(state: WanState, controls: Controls) -> WanState:
    """Return the state with a unit's controls; another unit encodes the prompt."""
    return replace(
        state,
        on_prompt=on_prompt(state, controls),
        strength=strength(state, controls),
        guidance=controls.parameters.get("guidance", state.guidance),
        past_guidance=controls.parameters.get("past_guidance", state.past_guidance),
        pictures=(*state.pictures, *pushed(controls)),
    )


def hears(state: WanState, controls: Controls, adapters: Adapters) -> bool:
    """Tell whether a new prompt must be encoded now, or the mix of adapters changes."""
    chosen = adapters.mix(controls.parameters, state.mix) != state.mix
    return (controls.prompt is not None or chosen) and not state.turned


def pushed(controls: Controls) -> tuple[MediaInput, ...]:
    """Return the pushed pictures; no loop has more than one input stream."""
    return tuple(picture for stream in controls.media.values() for picture in stream)


def on_prompt(state: WanState, controls: Controls) -> OnPrompt:
    """Return what a new prompt does, with these controls applied."""
    return OnPrompt(int(controls.parameters.get("on_prompt", state.on_prompt)))


def strength(state: WanState, controls: Controls) -> float:
    """Return the strength of the repainting, with these controls applied."""
    return controls.parameters.get("strength", state.strength)
