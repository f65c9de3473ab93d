"""Sessions over HTTP: open, list, show, end. Also what can be opened."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from reverie.models.contract.spec import ModelSpec
from reverie.rtc.app_context import AppContext
from reverie.rtc.http.auth import authorized, check_drives
from reverie.rtc.http.json_bodies import (
    bearer_of,
    json_response,
    read_object,
    refused_response,
)
from reverie.rtc.wire.errors import BadMessageError, HttpRefusedError
from reverie.rtc.wire.framing import refusal
from reverie.sessions import (
    BadRequestError,
    Role,
    ServerSession,
    SessionCredentials,
    SessionEndedError,
    SessionRequest,
    TooManyError,
    UnknownOwnerError,
    UnknownSessionError,
)
from reverie.sessions.protocol.commands import Count, Name, Number, Seed, Text
from reverie.sessions.runtime.session_request import STOPS
from reverie.sessions.state.program_controls import ProgramControls

RETRY_S = 2.0
"""When to ask again a server whose models are still loading."""

NOT_HERE = "there is no such session here, or the token is none of its own"
"""Said of both alike, so that ids cannot be probed."""

Handler = Callable[[Request], Awaitable[Response]]
M = TypeVar("M", bound=BaseModel)


class NewSession(BaseModel):
    """The body of a request for a session; what it leaves out, the server chooses."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: Name | None = None
    program: Name | None = None
    prompt: Text = ""
    seed: Seed | None = None
    parameters: dict[Name, Number] = Field(default_factory=dict, max_length=32)
    voice: bool = False
    stop: list[Text] = Field(default_factory=list, max_length=STOPS)


class Fork(BaseModel):
    """The body of a request to fork a session; without a chunk, from what was seen last."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    chunk: Count | None = None


class SessionRoutes:
    """Handlers of `/v1/sessions` and `/v1/models`."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def create(self, request: Request) -> Response:
        """Open a session."""
        wanted = parsed(NewSession, await read_object(request, self._context.options))
        check_open(self._context)
        self._context.check_rate("openings", request)
        credentials = await self._context.store.create(
            SessionRequest(
                model=model_of(self._context, wanted.model),
                program=wanted.program or "",
                prompt=wanted.prompt,
                seed=wanted.seed,
                parameters=wanted.parameters,
                voice=wanted.voice,
                stop=tuple(wanted.stop),
                owner=owner_of(request),
                address=self._context.addresses.of(request),
            )
        )
        return await self._created(request, credentials)

    async def fork(self, request: Request) -> Response:
        """Open a session that goes on from what was seen of another one."""
        server_session, role = self._authorized(request)
        check_drives(role)
        check_open(self._context)
        wanted = parsed(Fork, await read_object(request, self._context.options))
        self._context.check_rate("openings", request)
        address = self._context.addresses.of(request)
        credentials = await self._context.store.fork(server_session.id, wanted.chunk, address)
        return await self._created(request, credentials)

    async def list(self, request: Request) -> Response:
        """List the sessions of an owner."""
        owner = owner_of(request)
        if owner is None:
            raise _unauthorized("the sessions of which owner: Authorization: Bearer <owner>")
        self._context.store.check_owner(owner)
        return json_response(
            {"sessions": [_shown(each) for each in self._context.store.list(owner)]}
        )

    async def show(self, request: Request) -> Response:
        """Show a session to somebody who has one of its secrets."""
        server_session, _ = self._authorized(request)
        return json_response(_shown(server_session))

    async def delete(self, request: Request) -> Response:
        """End a session."""
        server_session, role = self._authorized(request)
        check_drives(role)
        self._context.store.close(server_session.id)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    async def models(self, _: Request) -> Response:
        """Tell what can be opened."""
        specs = self._context.models.specs
        return json_response({"models": [_model(name, spec) for name, spec in specs.items()]})

    async def _created(self, request: Request, credentials: SessionCredentials) -> Response:
        """Tell of a new session; end it where nobody is left to be told, for it holds a place."""
        if await request.is_disconnected():
            credentials.session.end("abandoned", "who asked for it has hung up")
        self._context.metrics.created.inc()
        body = {
            "id": credentials.session.id,
            "token": credentials.token,
            "watch_token": credentials.watch_token,
            "owner": credentials.owner,
            "view": credentials.session.view.model_dump(mode="json"),
        }
        return json_response(body, HTTPStatus.CREATED)

    def _authorized(self, request: Request) -> tuple[ServerSession, Role]:
        return authorized(self._context, request, str(request.path_params["id"]))


def with_typed_errors(handler: Handler) -> Handler:
    """Return the handler, answering what it refuses in the form that all errors have."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except REFUSALS as error:
            return refused_response(refusal_of(error))

    return answer


REFUSALS = (
    HttpRefusedError,
    BadMessageError,
    BadRequestError,
    UnknownOwnerError,
    TooManyError,
    UnknownSessionError,
    SessionEndedError,
)
"""What is raised where a request is refused."""


def refusal_of(error: Exception) -> HttpRefusedError | BadMessageError:
    """Return the form over HTTP of one of `REFUSALS`."""
    match error:
        case HttpRefusedError() | BadMessageError():
            return error
        case BadRequestError():
            status = HTTPStatus.BAD_REQUEST
            return HttpRefusedError(status, error.code, error.message, field=error.field)
        case UnknownOwnerError():
            return _bad_owner(str(error))
        case TooManyError() | UnknownSessionError() | SessionEndedError():
            return _refused_by_store(error)
        case _:
            raise AssertionError(f"{type(error).__name__} is no refusal") from error


def _refused_by_store(
    error: TooManyError | UnknownSessionError | SessionEndedError,
) -> HttpRefusedError:
    if isinstance(error, UnknownSessionError):
        return HttpRefusedError(HTTPStatus.NOT_FOUND, "no_such_session", NOT_HERE)
    if isinstance(error, TooManyError):
        own = error.what in ("sessions_per_owner", "sessions_per_address")
        status = HTTPStatus.TOO_MANY_REQUESTS if own else HTTPStatus.SERVICE_UNAVAILABLE
        return HttpRefusedError(
            status, f"too_many_{error.what}", str(error), retry_after_s=error.retry_after_s
        )
    if error.reason == "shutdown":
        return _shutting_down()
    if error.reason in ("pool_full", "no_worker", "worker_lost"):
        return HttpRefusedError(
            HTTPStatus.SERVICE_UNAVAILABLE, error.reason, str(error), retry_after_s=RETRY_S
        )
    if error.reason == "model_unavailable":  # until an operator has looked; no use in trying again
        return HttpRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, error.reason, str(error))
    return HttpRefusedError(HTTPStatus.GONE, error.reason, str(error))


def check_open(context: AppContext) -> None:
    """Check that the server opens sessions.

    Raises:
        HttpRefusedError: the server is draining.
    """
    if context.draining:
        raise _shutting_down()


def model_of(context: AppContext, name: str | None) -> str:
    """Return the model to open: the named one, else the first that has been loaded.

    Raises:
        HttpRefusedError: the models are being loaded, and it may be one of them.
    """
    models = context.models
    if name is not None and (name in models.specs or models.ready):
        return name
    if name is None and models.specs:
        return next(iter(models.specs))
    text = "the models are still being loaded"
    raise HttpRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "not_ready", text, retry_after_s=RETRY_S)


def _shutting_down() -> HttpRefusedError:
    text = "the server is leaving"
    return HttpRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "shutting_down", text, retry_after_s=5)


def _unauthorized(text: str) -> HttpRefusedError:
    return HttpRefusedError(HTTPStatus.UNAUTHORIZED, "unauthorized", text, field="Authorization")


def _bad_owner(text: str) -> HttpRefusedError:
    return HttpRefusedError(HTTPStatus.UNAUTHORIZED, "bad_owner", text, field="Authorization")


def owner_of(request: Request) -> str | None:
    """Return the owner that a request names; None when it names none.

    Raises:
        HttpRefusedError: there is an `Authorization` header, but no owner in it.
    """
    owner = bearer_of(request)
    if owner is None and "authorization" in request.headers:
        raise _bad_owner("an owner is named by: Authorization: Bearer <owner>")
    return owner


def parsed(kind: type[M], value: dict[str, object]) -> M:
    """Return the body of a request.

    Raises:
        BadMessageError: names the field that is wrong.
    """
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise refusal(error, value, kind.model_fields) from None


def _shown(server_session: ServerSession) -> dict[str, object]:
    return {"id": server_session.id, "view": server_session.view.model_dump(mode="json")}


def _model(name: str, spec: ModelSpec) -> dict[str, object]:
    return {
        "name": name,
        "title": spec.title,
        "licence": spec.licence,
        "programs": [_program(spec, program.name) for program in spec.programs],
    }


def _program(spec: ModelSpec, name: str) -> dict[str, object]:
    controls = ProgramControls(spec, name)
    parameters = controls.parameter_views(controls.defaults())
    return {
        "name": name,
        "controls": [each.model_dump(mode="json") for each in controls.control_views()],
        "parameters": [each.model_dump(mode="json") for each in parameters],
        "inputs": [each.model_dump(mode="json") for each in controls.input_views()],
        "streams": [each.model_dump(mode="json") for each in controls.stream_views()],
        "takes_prompt": controls.takes_prompt,
        "takes_turns": controls.takes_turns,
        "lead_chunks": controls.lead_chunks,
    }
