"""What the controls of a unit ask of a session's state."""

from dataclasses import replace

from reverie.models.contract.controls import Controls, MediaInput
from reverie.models.services.adapters import Adapters
from reverie.models.wan.state import OnPrompt, WanState


def taken(state: WanState, controls: Controls) -> WanState:
    """Return the state after a unit has taken controls; a prompt is read by a unit of its own."""
    return replace(
        state,
        on_prompt=on_prompt(state, controls),
        strength=strength(state, controls),
        guidance=controls.parameters.get("guidance", state.guidance),
        past_guidance=controls.parameters.get("past_guidance", state.past_guidance),
        pictures=(*state.pictures, *pushed(controls)),
    )


def hears(state: WanState, controls: Controls, adapters: Adapters) -> bool:
    """Tell whether a new prompt is to be read now, or another mix of adapters to be taken up."""
    chosen = adapters.mix(controls.parameters, state.mix) != state.mix
    return (controls.prompt is not None or chosen) and not state.turned


def pushed(controls: Controls) -> tuple[MediaInput, ...]:
    """Return the pictures that were pushed; no loop has more than one stream of them."""
    return tuple(picture for stream in controls.media.values() for picture in stream)


def on_prompt(state: WanState, controls: Controls) -> OnPrompt:
    """Return what a new prompt does once the controls act."""
    return OnPrompt(int(controls.parameters.get("on_prompt", state.on_prompt)))


def strength(state: WanState, controls: Controls) -> float:
    """Return how much of a picture is repainted once the controls act."""
    return controls.parameters.get("strength", state.strength)
