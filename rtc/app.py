"""The HTTP application: every route, behind the checks of Host and Origin."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from reverie.rtc.app_context import AppContext
from reverie.rtc.forwarding import ForwardedRequests
from reverie.rtc.http.json_bodies import error_response, json_response, speed_json
from reverie.rtc.http.recording_routes import RecordingRoutes
from reverie.rtc.http.refusals import with_typed_errors
from reverie.rtc.http.session_routes import SessionRoutes
from reverie.rtc.http.status_route import StatusRoute
from reverie.rtc.http.upload_routes import UploadRoutes
from reverie.rtc.http.web_files import WebFiles
from reverie.rtc.origins import OriginGuard, TrustRules
from reverie.rtc.webrtc.peer_registry import PeerRegistry
from reverie.rtc.webrtc.signalling import Signalling
from reverie.rtc.webrtc.whip import WhipRoutes
from reverie.rtc.websocket.endpoint import WebSocketEndpoint
from reverie.rtc.websocket.handshake import Hello
from reverie.rtc.wire.errors import INTERNAL_ERROR
from reverie.sessions.protocol.errors import Refusal
from reverie.sessions.protocol.schema import protocol_schema


def create_app(context: AppContext, web_files: WebFiles | None = None) -> Starlette:
    """Return the application of one server.

    Args:
        context: the sessions, models and limits.
        web_files: the page; None serves the web client of the package.
    """
    sessions, health = SessionRoutes(context), Health(context)
    peers = PeerRegistry(context)
    signalling = Signalling(context, peers)
    files = web_files or WebFiles.of_package()
    get = partial(Route, methods=["GET"])
    typed = with_typed_errors
    one = "/v1/sessions/{id}"
    return Starlette(
        routes=[
            get("/", files.index),
            get("/static/{name:path}", files.file),
            get("/healthz", health.alive),
            get("/readyz", health.ready),
            get("/metrics", health.metrics),
            get("/v1/schema", Schema().show),
            get("/v1/status", StatusRoute(context).show),
            get("/v1/models", typed(sessions.models)),
            get("/v1/sessions", typed(sessions.list)),
            Route("/v1/sessions", typed(sessions.create), methods=["POST"]),
            Route(f"{one}/fork", typed(sessions.fork), methods=["POST"]),
            get(one, typed(sessions.show)),
            get(f"{one}/stats", typed(sessions.stats)),
            Route(one, typed(sessions.delete), methods=["DELETE"]),
            get("/v1/ice", typed(signalling.ice)),
            Route(one + "/webrtc", typed(signalling.open), methods=["POST"]),
            get(one + "/webrtc/{peer}", typed(signalling.show)),
            Route(one + "/webrtc/{peer}", typed(signalling.patch), methods=["PATCH"]),
            Route(one + "/webrtc/{peer}", typed(signalling.delete), methods=["DELETE"]),
            *_standard(one + "/whep", WhipRoutes(context, peers, "whep")),
            *_standard(one + "/whip", WhipRoutes(context, peers, "whip")),
            *_recordings(one, RecordingRoutes(context)),
            Route(one + "/inputs/{stream}", typed(UploadRoutes(context).put), methods=["PUT"]),
            WebSocketRoute(one + "/ws", WebSocketEndpoint(context).open),
            WebSocketRoute("/{path:path}", _no_socket_here),
        ],
        middleware=[
            Middleware(ForwardedRequests, options=context.options),
            Middleware(OriginGuard, rules=TrustRules(context.options)),
        ],
        exception_handlers={HTTPException: _http_error, Exception: _internal_error},
        lifespan=lambda _: _run_tasks(context, peers),
    )


def _recordings(session: str, routes: RecordingRoutes) -> tuple[Route, ...]:
    typed = with_typed_errors
    all_of, one = f"{session}/recordings", f"{session}/recordings/{{recording}}"
    return (
        Route(all_of, typed(routes.list), methods=["GET"]),
        Route(all_of, typed(routes.create), methods=["POST"]),
        Route(f"{session}/clips", typed(routes.clip), methods=["POST"]),
        Route(one, typed(routes.show), methods=["GET"]),
        Route(one, typed(routes.delete), methods=["DELETE"]),
        Route(f"{one}/stop", typed(routes.stop), methods=["POST"]),
        Route(f"{one}/{{file}}", typed(routes.file), methods=["GET"]),
    )


def _standard(path: str, routes: WhipRoutes) -> tuple[Route, ...]:
    typed = with_typed_errors
    return (
        Route(path, typed(routes.open), methods=["POST"]),
        Route(path, routes.options, methods=["OPTIONS"]),
        Route(path + "/{peer}", typed(routes.patch), methods=["PATCH"]),
        Route(path + "/{peer}", typed(routes.delete), methods=["DELETE"]),
        Route(path + "/{peer}", routes.options, methods=["OPTIONS"]),
    )


@asynccontextmanager
async def _run_tasks(context: AppContext, peers: PeerRegistry) -> AsyncIterator[None]:
    async with peers.running(), asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(context.metrics.watch_loop(), name="loop delay")
        yield
        watching.cancel()


class Health:
    """Handlers of health, readiness and metrics."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def alive(self, _: Request) -> Response:
        """Answer as long as the event loop runs."""
        return json_response({"alive": True})

    async def ready(self, _: Request) -> Response:
        """Tell whether a new session would begin at once, and the state of each model."""
        context = self._context
        models = {
            name: {
                "ready": status.ready,
                "failure": status.failure,
                "slots": status.slots,
                "busy": status.busy,
                "waiting": status.waiting,
                "workers_lost": status.losses,
                "speed": None if status.speed is None else speed_json(status.speed),
            }
            for name, status in context.models.status.items()
        }
        body = {
            "ready": context.ready,
            "draining": context.draining,
            "exhausted": context.exhausted,
            "sessions": len(context.store),
            "models": models,
        }
        return json_response(
            body, HTTPStatus.OK if context.ready else HTTPStatus.SERVICE_UNAVAILABLE
        )

    async def metrics(self, _: Request) -> Response:
        """Show the counters."""
        metrics = self._context.metrics
        metrics.ready.set(self._context.ready)
        metrics.sessions.set(len(self._context.store))
        for name, status in self._context.models.status.items():
            metrics.slots.labels(name).set(status.slots)
            metrics.busy.labels(name).set(status.busy)
            metrics.waiting.labels(name).set(status.waiting)
            metrics.workers_lost.labels(name).set(status.losses)
        text, media_type = metrics.page()
        return Response(text, media_type=media_type)


class Schema:
    """The handler of the JSON Schema of all messages, which is built once."""

    def __init__(self) -> None:
        hello = Hello.model_json_schema()
        self._text = json.dumps({**protocol_schema(), "hello": hello})

    async def show(self, _: Request) -> Response:
        """Answer `/v1/schema`."""
        return Response(self._text, media_type="application/schema+json")


async def _no_socket_here(socket: WebSocket) -> None:
    text = "WebSockets are at /v1/sessions/{id}/ws"
    await socket.send_denial_response(error_response(404, Refusal("not_found", text)))


async def _http_error(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    phrase = HTTPStatus(status).phrase
    return error_response(status, Refusal(phrase.lower().replace(" ", "_"), phrase))


async def _internal_error(_: Request, error: Exception) -> Response:
    return error_response(500, Refusal("internal_error", INTERNAL_ERROR))
