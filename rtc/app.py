"""The HTTP application: every route, behind the check of who may ask."""

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

from reverie.rtc.door import Door
from reverie.rtc.edge import Edge
from reverie.rtc.forwarding import ForwardedRequests
from reverie.rtc.handshake import Hello
from reverie.rtc.http_json import error_response, json_response
from reverie.rtc.origins import OriginGuard, TrustRules
from reverie.rtc.peers import PeerRoom
from reverie.rtc.recordings import RecordingRoutes
from reverie.rtc.rest import SessionRoutes, with_typed_errors
from reverie.rtc.signalling import Signalling
from reverie.rtc.uploads import UploadRoutes
from reverie.rtc.web_files import WebFiles
from reverie.rtc.whip import WhipRoutes
from reverie.sessions.schema import protocol_schema


def create_app(edge: Edge, web_files: WebFiles | None = None) -> Starlette:
    """Return the application that serves what is behind `edge`.

    Args:
        edge: the sessions, models and limits.
        web_files: the page; None serves the client of the package.
    """
    sessions, health = SessionRoutes(edge), Health(edge)
    room = PeerRoom(edge)
    signalling = Signalling(edge, room)
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
            get("/v1/models", typed(sessions.models)),
            get("/v1/sessions", typed(sessions.list)),
            Route("/v1/sessions", typed(sessions.create), methods=["POST"]),
            Route(f"{one}/fork", typed(sessions.fork), methods=["POST"]),
            get(one, typed(sessions.show)),
            Route(one, typed(sessions.delete), methods=["DELETE"]),
            get("/v1/ice", typed(signalling.ice)),
            Route(one + "/webrtc", typed(signalling.open), methods=["POST"]),
            get(one + "/webrtc/{peer}", typed(signalling.show)),
            Route(one + "/webrtc/{peer}", typed(signalling.patch), methods=["PATCH"]),
            Route(one + "/webrtc/{peer}", typed(signalling.delete), methods=["DELETE"]),
            *_standard(one + "/whep", WhipRoutes(edge, room, "whep")),
            *_standard(one + "/whip", WhipRoutes(edge, room, "whip")),
            *_recordings(one, RecordingRoutes(edge)),
            Route(one + "/inputs/{stream}", typed(UploadRoutes(edge).put), methods=["PUT"]),
            WebSocketRoute(one + "/ws", Door(edge).open),
            WebSocketRoute("/{path:path}", _no_socket_here),
        ],
        middleware=[
            Middleware(ForwardedRequests, options=edge.options),
            Middleware(OriginGuard, rules=TrustRules(edge.options)),
        ],
        exception_handlers={HTTPException: _http_error, Exception: _internal_error},
        lifespan=lambda _: _living(edge, room),
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
async def _living(edge: Edge, room: PeerRoom) -> AsyncIterator[None]:
    async with room.running(), asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(edge.metrics.watch_loop(), name="loop delay")
        yield
        watching.cancel()


class Health:
    """Says how the server is doing."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge

    async def alive(self, _: Request) -> Response:
        """Answer as long as the event loop runs."""
        return json_response({"alive": True})

    async def ready(self, _: Request) -> Response:
        """Say whether a new session would run, and how each model is doing."""
        edge = self._edge
        models = {
            name: {
                "ready": status.ready,
                "failure": status.failure,
                "slots": status.slots,
                "busy": status.busy,
                "waiting": status.waiting,
                "workers_lost": status.losses,
            }
            for name, status in edge.models.status.items()
        }
        body = {
            "ready": edge.ready,
            "draining": edge.draining,
            "exhausted": edge.exhausted,
            "sessions": len(edge.store),
            "models": models,
        }
        return json_response(body, HTTPStatus.OK if edge.ready else HTTPStatus.SERVICE_UNAVAILABLE)

    async def metrics(self, _: Request) -> Response:
        """Show the counters."""
        metrics = self._edge.metrics
        metrics.ready.set(self._edge.ready)
        metrics.sessions.set(len(self._edge.store))
        for name, status in self._edge.models.status.items():
            metrics.slots.labels(name).set(status.slots)
            metrics.busy.labels(name).set(status.busy)
            metrics.waiting.labels(name).set(status.waiting)
            metrics.workers_lost.labels(name).set(status.losses)
        text, media_type = metrics.page()
        return Response(text, media_type=media_type)


class Schema:
    """The vocabulary as JSON Schema, made once."""

    def __init__(self) -> None:
        hello = Hello.model_json_schema()
        self._text = json.dumps({**protocol_schema(), "hello": hello})

    async def show(self, _: Request) -> Response:
        """Answer `/v1/schema`."""
        return Response(self._text, media_type="application/schema+json")


async def _no_socket_here(socket: WebSocket) -> None:
    text = "WebSockets are at /v1/sessions/{id}/ws"
    await socket.send_denial_response(error_response(404, "not_found", text))


async def _http_error(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    phrase = HTTPStatus(status).phrase
    return error_response(status, phrase.lower().replace(" ", "_"), phrase)


async def _internal_error(_: Request, error: Exception) -> Response:
    return error_response(500, "internal_error", "the server made a mistake; its log says more")
