"""Inputs that a prompt is read under: what is in effect after them, which give way to others."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reverie.engine.emissions import ControlSuperseded
from reverie.engine.inputs import ControlId, ControlInput, ParameterInput, PromptInput

Inputs = tuple[ControlInput, ...]


@dataclass(frozen=True, slots=True)
class EffectiveControls:
    """The prompt and the parameters in effect for a session."""

    prompt: str
    parameters: Mapping[str, float]

    def after(self, inputs: Iterable[ControlInput]) -> "EffectiveControls":
        """Return what will be in effect after some inputs."""
        prompt, parameters = self.prompt, dict(self.parameters)
        for item in inputs:
            match item:
                case PromptInput(text=text):
                    prompt = text
                case ParameterInput(name=name, value=value):
                    parameters[name] = value
                case _:
                    pass
        return EffectiveControls(prompt, parameters)

    def value(self, item: ControlInput) -> str | float:
        """Return what is in effect of what an input sets."""
        if isinstance(item, ParameterInput):
            return self.parameters.get(item.name, 0.0)
        return self.prompt


def merged(session: str, inputs: Inputs, told: list[ControlSuperseded]) -> Inputs:
    """Return the newest of each kind, in order; what it replaces is told."""
    newest = {target(item): item for item in inputs}
    told += [
        ControlSuperseded(session, item.control, newest[target(item)].control)
        for item in inputs
        if newest[target(item)] is not item
    ]
    return tuple(item for item in inputs if newest[target(item)] is item)


def without(
    session: str, inputs: Inputs, newer: Mapping[str, ControlId], told: list[ControlSuperseded]
) -> Inputs:
    """Return the inputs that nothing newer replaces; what is replaced is told."""
    told += [
        ControlSuperseded(session, item.control, newer[target(item)])
        for item in inputs
        if target(item) in newer
    ]
    return tuple(item for item in inputs if target(item) not in newer)


def target(item: ControlInput) -> str:
    """Return what an input sets; a prompt's is empty."""
    return item.name if isinstance(item, ParameterInput) else ""
