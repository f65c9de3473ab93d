"""Sessions over HTTP: open, fork, list, show, end; and the models that can be opened."""

from http import HTTPStatus

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from reverie.models.contract.spec import ModelSpec
from reverie.rtc.app_context import AppContext
from reverie.rtc.http.auth import authorized, check_drives
from reverie.rtc.http.json_bodies import (
    bearer_of,
    json_response,
    parsed,
    read_object,
)
from reverie.rtc.http.refusals import RETRY_S, bad_owner, shutting_down
from reverie.rtc.wire.errors import HttpRefusedError
from reverie.sessions import (
    Role,
    ServerSession,
    SessionCredentials,
    SessionRequest,
)
from reverie.sessions.protocol.commands import Count, Name, Number, Seed, Text
from reverie.sessions.runtime.session_request import STOPS
from reverie.sessions.state.program_controls import ProgramControls


class NewSession(BaseModel):
    """The body of a request for a session; the server chooses what it leaves out."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: Name | None = None
    program: Name | None = None
    prompt: Text = ""
    seed: Seed | None = None
    parameters: dict[Name, Number] = Field(default_factory=dict, max_length=32)
    voice: bool = False
    stop: list[Text] = Field(default_factory=list, max_length=STOPS)


class Fork(BaseModel):
    """The body of a request to fork a session; without a chunk, from the one that was seen last."""

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
        """Open a session that continues from what the viewer saw of another one."""
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
            raise _unauthorized("name the owner of the sessions: Authorization: Bearer <owner>")
        self._context.store.check_owner(owner)
        return json_response(
            {"sessions": [_shown(each) for each in self._context.store.list(owner)]}
        )

    async def show(self, request: Request) -> Response:
        """Show a session to a client that has one of its secrets."""
        server_session, _ = self._authorized(request)
        return json_response(_shown(server_session))

    async def stats(self, request: Request) -> Response:
        """Tell how a session runs now, to a client that has one of its secrets."""
        server_session, _ = self._authorized(request)
        return json_response(server_session.stats.model_dump(mode="json"))

    async def delete(self, request: Request) -> Response:
        """End a session."""
        server_session, role = self._authorized(request)
        check_drives(role)
        self._context.store.close(server_session.id)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    async def models(self, _: Request) -> Response:
        """List the models that can be opened."""
        specs = self._context.models.specs
        return json_response({"models": [_model(name, spec) for name, spec in specs.items()]})

    async def _created(self, request: Request, credentials: SessionCredentials) -> Response:
        """Answer with a new session; end it when the client has disconnected, to free its place."""
        if await request.is_disconnected():
            credentials.session.end("abandoned", "the client disconnected before the answer")
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


def check_open(context: AppContext) -> None:
    """Check that the server opens sessions.

    Raises:
        HttpRefusedError: the server is draining.
    """
    if context.draining:
        raise shutting_down()


def model_of(context: AppContext, name: str | None) -> str:
    """Return the model to open: the named one, else the first that has been loaded.

    Raises:
        HttpRefusedError: models are still loading, and it may be one of them.
    """
    models = context.models
    if name is not None and (name in models.specs or models.ready):
        return name
    if name is None and models.specs:
        return next(iter(models.specs))
    text = "the models are still loading"
    raise HttpRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "not_ready", text, retry_after_s=RETRY_S)


def _unauthorized(text: str) -> HttpRefusedError:
    return HttpRefusedError(HTTPStatus.UNAUTHORIZED, "unauthorized", text, field="Authorization")


def owner_of(request: Request) -> str | None:
    """Return the owner that a request names; None without an `Authorization` header.

    Raises:
        HttpRefusedError: the header names no owner.
    """
    owner = bearer_of(request)
    if owner is None and "authorization" in request.headers:
        raise bad_owner("name an owner as: Authorization: Bearer <owner>")
    return owner


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
        "lead": {"least_chunks": controls.lead.least_chunks, "most_ms": controls.lead.most_ms},
    }
