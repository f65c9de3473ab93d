"""The request that opens a session, checked against the models that are served."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from reverie.media.audio.espeak import Speech
from reverie.models.contract.errors import SpecError
from reverie.models.contract.spec import Capability, ModelSpec, StreamKind
from reverie.sessions.protocol.errors import BadRequestError, CommandError, ErrorCode
from reverie.sessions.protocol.parsing import check_opening
from reverie.sessions.state.limits import SessionLimits
from reverie.sessions.state.program_controls import ProgramControls
from reverie.sessions.state.prompt_memory import PromptMemory
from reverie.sessions.state.session_state import SessionState, new_session_id

SEEDS = 2**53
"""Seeds are below this, so that JSON numbers of every client can hold them."""


STOPS = 16
STOP_CHARS = 64
"""Texts that can end an answer, and characters of each."""


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """The session to open.

    Attributes:
        program: empty takes the model's first.
        seed: None takes one at random; the view tells it.
        owner: the secret of the owner, from an earlier session's credentials; None makes a new
            one.
        voice: have the model's text spoken.
        stop: texts that end an answer; it ends before them.
        address: the network address of the client, to be counted; None inside this process.
    """

    model: str
    program: str = ""
    prompt: str = ""
    seed: int | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    owner: str | None = None
    address: str | None = None
    voice: bool = False
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """A request that a served model can fulfil.

    Attributes:
        controls: what its program accepts.
    """

    request: SessionRequest
    spec: ModelSpec
    controls: ProgramControls
    prompt: PromptMemory
    seed: int

    @classmethod
    def of(
        cls, request: SessionRequest, specs: Mapping[str, ModelSpec], limits: SessionLimits
    ) -> "CheckedRequest":
        """Check a request against the models that are served.

        Raises:
            BadRequestError: names the field that is wrong.
        """
        check_opening(request.prompt, request.seed, dict(request.parameters))
        spec = _spec(request, specs)
        controls = _controls(request, spec)
        prompt = _prompt(request.prompt, limits.prompt_chars)
        _check_stop(request.stop, controls)
        return cls(request, spec, controls, prompt, _seed(request.seed))

    def state(self, owner: str) -> SessionState:
        """Return the state of a new session of `owner`."""
        request = self.request
        return SessionState(
            session=new_session_id(),
            owner=owner,
            model=request.model,
            program=self.controls.program,
            seed=self.seed,
            prompt=self.prompt,
            parameters=self.controls.defaults() | dict(request.parameters),
            stop=self.request.stop,
        )

    def voice(self, speech: Speech | None) -> Speech | None:
        """Return the voice of the session; None when the request asks for none.

        Raises:
            BadRequestError: it asks for one, and the server has none or the program no text.
        """
        if not self.request.voice:
            return None
        if speech is None:
            text = "this server has no voice (voice.engine)"
            raise BadRequestError(ErrorCode.NOT_ENABLED, text, field="voice")
        if not any(stream.kind is StreamKind.TEXT for _, stream in self.controls.streams):
            text = f"program {self.controls.program} has no text to speak"
            raise BadRequestError(ErrorCode.NOT_ENABLED, text, field="voice")
        return speech


def check_forks(spec: ModelSpec, program: str) -> None:
    """Refuse to fork a program of which a loop cannot.

    Raises:
        BadRequestError: names the loop.
    """
    for loop in spec.program(program).loops:
        if not spec.capabilities.has(loop, Capability.FORK):
            message = f"loop {loop} of program {program} cannot be forked"
            raise BadRequestError(ErrorCode.NOT_ENABLED, message, field="program")


def forked(state: SessionState) -> SessionState:
    """Return the state of a session that continues from another: prompt and settings only."""
    return SessionState(
        session=new_session_id(),
        owner=state.owner,
        model=state.model,
        program=state.program,
        seed=state.seed,
        prompt=state.prompt,
        parameters=dict(state.parameters),
        stop=state.stop,
    )


def _spec(request: SessionRequest, specs: Mapping[str, ModelSpec]) -> ModelSpec:
    spec = specs.get(request.model)
    if spec is None:
        known = ", ".join(specs) or "none"
        message = f"no model {request.model[:64]!r} is served; known: {known}"
        raise BadRequestError(ErrorCode.UNKNOWN_MODEL, message, field="model")
    return spec


def _controls(request: SessionRequest, spec: ModelSpec) -> ProgramControls:
    program = request.program or spec.programs[0].name
    try:
        controls = ProgramControls(spec, program)
    except SpecError:
        known = ", ".join(each.name for each in spec.programs)
        message = f"no program {program[:64]!r}; known: {known}"
        raise BadRequestError(ErrorCode.UNKNOWN_PROGRAM, message, field="program") from None
    try:
        for name, value in request.parameters.items():
            controls.check_parameter(name, value)
    except CommandError as error:
        field_name = error.field or "parameters"
        raise BadRequestError(error.code, error.message, field=field_name) from None
    return controls


def _prompt(prompt: str, limit: int) -> PromptMemory:
    if len(prompt.strip()) > limit:
        message = f"a prompt has at most {limit} characters (prompt_chars), not {len(prompt)}"
        raise BadRequestError(ErrorCode.TOO_LONG, message, field="prompt")
    return PromptMemory(limit).replaced(prompt)


def _check_stop(stop: tuple[str, ...], controls: ProgramControls) -> None:
    if stop and not any(loop.takes_turns for loop in controls.loops):
        text = f"program {controls.program} does not take turns"
        raise BadRequestError(ErrorCode.NOT_ENABLED, text, field="stop")
    if len(stop) > STOPS:
        text = f"at most {STOPS} texts can end an answer, not {len(stop)}"
        raise BadRequestError(ErrorCode.TOO_MANY, text, field="stop")
    for number, text in enumerate(stop):
        if not isinstance(text, str):
            wrong = f"a text, not {type(text).__name__}"
            raise BadRequestError(ErrorCode.WRONG_TYPE, wrong, field=f"stop.{number}")
        if not 0 < len(text) <= STOP_CHARS:
            wrong = f"of 1 to {STOP_CHARS} characters, not {len(text)}"
            raise BadRequestError(ErrorCode.OUT_OF_RANGE, wrong, field=f"stop.{number}")


def _seed(seed: int | None) -> int:
    if seed is None:
        return secrets.randbelow(SEEDS)
    if not 0 <= seed < SEEDS:
        message = f"a seed is at least 0 and below {SEEDS}"
        raise BadRequestError(ErrorCode.OUT_OF_RANGE, message, field="seed")
    return seed
