"""What a program accepts: the rules of its loops, and from a command to the loop's inputs."""

from collections.abc import Callable, Iterator, Mapping

from reverie.engine.inputs import AxisInput, ControlId, ControlInput, KeysInput, ParameterInput
from reverie.models.contract.controls import ControlSpec, KeyEdge, Merge, ParameterRole
from reverie.models.contract.spec import InputSpec, LoopSpec, ModelSpec, StreamKind, StreamSpec
from reverie.sessions.protocol.commands import PushAction
from reverie.sessions.protocol.errors import CommandError, ErrorCode
from reverie.sessions.protocol.session_view import (
    ControlView,
    InputView,
    ParameterView,
    SpeedView,
    StreamView,
)

NewId = Callable[[], ControlId]

EDGES_OF = {
    "tap": (True, False),
    "press": (True,),
    "release": (False,),
}


class ProgramControls:
    """The controls and parameters of a program; where two loops share a name, the first counts."""

    def __init__(self, model: ModelSpec, program: str) -> None:
        """Read them from the loops of `program`, which must exist."""
        names = model.program(program).loops
        self.program = program
        self._speed = model.speed
        self.loops: tuple[LoopSpec, ...] = tuple(model.loop(name) for name in names)
        self.lead = model.program(program).lead
        self._controls: dict[str, ControlSpec] = {}
        self._parameters = {spec.name: spec for spec in model.program_parameters(program)}
        self.inputs: dict[str, InputSpec] = {}
        for loop in self.loops:
            for control in loop.controls:
                self._controls.setdefault(control.name, control)
            for stream in loop.inputs:
                self.inputs.setdefault(stream.name, stream)

    @property
    def streams(self) -> Iterator[tuple[LoopSpec, StreamSpec]]:
        """Every output, with the loop that feeds it."""
        return ((loop, stream) for loop in self.loops for stream in loop.streams)

    @property
    def takes_prompt(self) -> bool:
        """Whether any loop reads prompts."""
        return any(loop.prompt_tokens > 0 for loop in self.loops)

    @property
    def takes_turns(self) -> bool:
        """Whether any loop answers turns."""
        return any(loop.takes_turns for loop in self.loops)

    @property
    def example_prompts(self) -> tuple[str, ...]:
        """Prompts that the program understands; each once."""
        return tuple(dict.fromkeys(text for loop in self.loops for text in loop.example_prompts))

    @property
    def example_turns(self) -> tuple[str, ...]:
        """Texts that can be said to the program; each once."""
        return tuple(dict.fromkeys(text for loop in self.loops for text in loop.example_turns))

    @property
    def barge_in(self) -> Mapping[str, str]:
        """The loops that speech can interrupt, each with the parameter that enables it."""
        found = ((loop.name, loop.parameter_for(ParameterRole.BARGE_IN)) for loop in self.loops)
        return {name: parameter for name, parameter in found if parameter is not None}

    def loop(self, name: str) -> LoopSpec:
        """Return a loop of the program.

        Raises:
            CommandError: the program has no loop of that name.
        """
        for loop in self.loops:
            if loop.name == name:
                return loop
        known = ", ".join(loop.name for loop in self.loops)
        raise CommandError(ErrorCode.UNKNOWN_LOOP, f"no such loop; known: {known}", field="loop")

    def defaults(self) -> dict[str, float]:
        """Return the default of each parameter."""
        return {name: spec.default for name, spec in self._parameters.items()}

    def action_inputs(self, command: PushAction, new_id: NewId) -> tuple[ControlInput, ...]:
        """Return the loop inputs of an action, one for each control.

        Raises:
            CommandError: names the first wrong field only.
        """
        checked = [
            (self._control(name), self._checked_amount(name, value))
            for name, value in command.action.items()
        ]
        return tuple(
            _input(spec, value, EDGES_OF[command.edge], new_id()) for spec, value in checked
        )

    def parameter_inputs(
        self, values: Mapping[str, float], new_id: NewId
    ) -> tuple[ParameterInput, ...]:
        """Return one input for each parameter.

        Raises:
            CommandError: names the first parameter that is unknown or out of range.
        """
        for name, value in values.items():
            self.check_parameter(name, value)
        return tuple(ParameterInput(new_id(), name, float(value)) for name, value in values.items())

    def check_parameter(self, name: str, value: float) -> None:
        """Check a value for a parameter.

        Raises:
            CommandError: there is no such parameter, or it does not take the value.
        """
        field = f"parameters.{name}"
        spec = self._parameters.get(name)
        if spec is None:
            known = ", ".join(self._parameters) or "none"
            raise CommandError(
                ErrorCode.UNKNOWN_PARAMETER, f"no such parameter; known: {known}", field=field
            )
        if not spec.low <= value <= spec.high:
            message = f"{value:g} is outside {spec.low:g} to {spec.high:g}"
            raise CommandError(ErrorCode.OUT_OF_RANGE, message, field=field)
        if spec.integer and not float(value).is_integer():
            raise CommandError(
                ErrorCode.OUT_OF_RANGE, f"{value:g} is not a whole number", field=field
            )

    def control_views(self) -> tuple[ControlView, ...]:
        """Return what a client needs to offer the controls."""
        return tuple(
            ControlView(
                name=spec.name,
                merge=spec.merge.value,
                keys=spec.keys,
                low=spec.low,
                high=spec.high,
                label=spec.label,
                bindings=dict(spec.bindings),
                drag=spec.drag.value,
            )
            for spec in self._controls.values()
        )

    def parameter_views(self, values: Mapping[str, float]) -> tuple[ParameterView, ...]:
        """Return what a client needs to offer the parameters, at their present values."""
        return tuple(
            ParameterView(
                name=spec.name,
                value=values.get(spec.name, spec.default),
                default=spec.default,
                low=spec.low,
                high=spec.high,
                integer=spec.integer,
                label=spec.label,
                stream=spec.stream,
            )
            for spec in self._parameters.values()
        )

    def input_views(self) -> tuple[InputView, ...]:
        """Return what a client needs to push media."""
        return tuple(
            InputView(
                name=spec.name,
                kind="video" if spec.kind is StreamKind.VIDEO else "audio",
                merge="latest" if spec.merge is Merge.LATEST else "fifo",
                width=spec.width,
                height=spec.height,
                rate_hz=spec.rate_hz,
                channels=spec.channels if spec.kind is StreamKind.AUDIO else 0,
                label=spec.label,
            )
            for spec in self.inputs.values()
        )

    def stream_views(self) -> tuple[StreamView, ...]:
        """Return what the program puts out."""
        return tuple(
            StreamView(name=stream.name, kind=stream.kind.value, loop=loop.name)
            for loop, stream in self.streams
        )

    def speed_view(self) -> SpeedView | None:
        """Return how fast the model is here; None where that was not measured."""
        if self._speed is None or self._speed.makes_hz is None:
            return None
        return SpeedView(
            makes_hz=round(self._speed.makes_hz, 2),
            declared_hz=self._speed.declared_hz,
            keeps_rate=self._speed.keeps_rate,
        )

    def _control(self, name: str) -> ControlSpec:
        spec = self._controls.get(name)
        if spec is None:
            known = ", ".join(self._controls) or "none"
            raise CommandError(
                ErrorCode.UNKNOWN_CONTROL,
                f"no such control; known: {known}",
                field=f"action.{name}",
            )
        return spec

    def _checked_amount(self, name: str, value: str | float) -> str | float:
        spec, field = self._controls[name], f"action.{name}"
        if spec.merge is Merge.EDGES:
            if not isinstance(value, str):
                raise CommandError(ErrorCode.WRONG_TYPE, "takes the name of a key", field=field)
            if value not in spec.keys:
                message = f"no key {value!r}; known: {', '.join(spec.keys)}"
                raise CommandError(ErrorCode.UNKNOWN_KEY, message, field=field)
        elif isinstance(value, str):
            raise CommandError(ErrorCode.WRONG_TYPE, "takes a number", field=field)
        elif not spec.low <= value <= spec.high:
            message = f"{value:g} is outside {spec.low:g} to {spec.high:g}"
            raise CommandError(ErrorCode.OUT_OF_RANGE, message, field=field)
        return value


def _input(
    spec: ControlSpec, value: str | float, downs: tuple[bool, ...], control: ControlId
) -> ControlInput:
    if isinstance(value, str):
        return KeysInput(control, spec.name, tuple(KeyEdge(value, down) for down in downs))
    return AxisInput(control, spec.name, float(value))
