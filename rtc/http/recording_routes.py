"""Recordings over HTTP: start, stop, list, fetch, delete; and clips of the last seconds.

Recordings outlive their session: a client with one of its secrets, or its owner's, can fetch them
until they are deleted. Ids are looked up and never become part of a path.
"""

import asyncio
from http import HTTPStatus
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.types import Message, Receive, Scope, Send

from reverie.media.job_thread import run_apart
from reverie.rtc.app_context import AppContext
from reverie.rtc.forwarding import own_path
from reverie.rtc.http.auth import authorized, check_drives
from reverie.rtc.http.json_bodies import (
    bearer_of,
    error_response,
    json_response,
    parsed,
    read_object,
)
from reverie.rtc.wire.errors import HttpRefusedError
from reverie.sessions import CommandError, Role, ServerSession
from reverie.sessions.protocol.errors import ErrorCode, Refusal
from reverie.sessions.recording.folder import EVENTS, VIDEO, input_suffix
from reverie.sessions.recording.recording import Recording
from reverie.sessions.recording.recordings import Recordings

COMPLETE_S: Final = 30.0
"""How long the disk may take to write the rest of a recording, or a clip."""

_STATUS = {
    ErrorCode.NOT_ENABLED: HTTPStatus.FORBIDDEN,
    ErrorCode.TOO_MANY: HTTPStatus.TOO_MANY_REQUESTS,
    ErrorCode.CLOSED: HTTPStatus.GONE,
}

_FILES = {
    "video.mp4": (VIDEO, "video/mp4"),
    "events.jsonl": (EVENTS, "application/jsonl"),
}


_RANGE_REFUSALS = {
    HTTPStatus.BAD_REQUEST: "the Range header cannot be read; write bytes=FIRST-LAST",
    HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE: "the range begins after the end of the file",
}


class NewRecording(BaseModel):
    """The body of a request to record."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    inputs: bool = False


class NewClip(BaseModel):
    """The body of a request for a clip."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    seconds: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 10.0


class RecordingRoutes:
    """Handlers below `/v1/sessions/{id}/recordings`, and of `/v1/sessions/{id}/clips`."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def create(self, request: Request) -> Response:
        """Start to record a running session."""
        server_session = self._driven(request)
        wanted = parsed(NewRecording, await read_object(request, self._context.options))
        try:
            recording = server_session.recorder.start(inputs=wanted.inputs)
        except CommandError as error:
            raise _refused(error) from None
        return _shown(request, recording, HTTPStatus.CREATED)

    async def clip(self, request: Request) -> Response:
        """Keep the last seconds of a running session; answer once the clip is complete."""
        server_session = self._driven(request)
        wanted = parsed(NewClip, await read_object(request, self._context.options))
        try:
            clip = server_session.recorder.clip(wanted.seconds)
        except CommandError as error:
            raise _refused(error) from None
        return _shown(request, await self._complete(clip), HTTPStatus.CREATED)

    async def list(self, request: Request) -> Response:
        """List the recordings of a session, even of one that has ended."""
        self._admit(request)
        found = self._recordings.list(str(request.path_params["id"]))
        return json_response({"recordings": [each.model_dump(mode="json") for each in found]})

    async def show(self, request: Request) -> Response:
        """Show one recording."""
        return _shown(request, self._found(request)[0])

    async def stop(self, request: Request) -> Response:
        """Stop a recording; answer once it is complete. Idempotent."""
        recording, role = self._found(request)
        check_drives(role)
        if recording.state == "running":
            if recording.kind == "recording":
                self._recordings.stop(recording.id)
            recording = await self._complete(recording)
        return _shown(request, recording)

    async def delete(self, request: Request) -> Response:
        """Delete a recording; a running one is stopped first."""
        recording, role = self._found(request)
        check_drives(role)
        self._recordings.delete(recording.id)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    async def file(self, request: Request) -> Response:
        """Send a file of a recording, or the range of it that the client asks for."""
        recording, _ = self._found(request)
        name = str(request.path_params["file"])
        inputs = map(input_suffix, range(len(recording.inputs)))
        files = _FILES | {suffix.removeprefix("."): (suffix, "video/mp4") for suffix in inputs}
        if name not in files:
            raise HttpRefusedError(HTTPStatus.NOT_FOUND, "not_found", "no such file")
        suffix, media_type = files[name]
        path = self._recordings.file(recording, suffix)
        # A running recording has no file before its first fragment; a clip has no events.
        if not await run_apart(path.is_file, "look for a file"):
            raise HttpRefusedError(HTTPStatus.NOT_FOUND, "not_found", "there is no such file yet")
        return RangedFile(
            path,
            media_type=media_type,
            filename=f"reverie-{recording.id}{suffix}",
            headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
        )

    @property
    def _recordings(self) -> Recordings:
        recordings = self._context.store.recordings
        if recordings is None or not recordings.options.enabled:
            text = "recording is disabled on this server (recordings.enabled)"
            raise HttpRefusedError(HTTPStatus.FORBIDDEN, ErrorCode.NOT_ENABLED, text)
        return recordings

    async def _complete(self, recording: Recording) -> Recording:
        try:
            async with asyncio.timeout(COMPLETE_S):
                return await self._recordings.completed(recording)
        except TimeoutError:
            text = "the disk does not keep up; ask for the recording later"
            raise HttpRefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE, "disk_slow", text, retry_after_s=COMPLETE_S
            ) from None

    def _found(self, request: Request) -> tuple[Recording, Role]:
        role = self._admit(request)
        session, id = str(request.path_params["id"]), str(request.path_params["recording"])
        recording = self._recordings.get(session, id)
        if recording is None:
            text = "there is no such recording, or it was deleted"
            raise HttpRefusedError(HTTPStatus.NOT_FOUND, "no_such_recording", text)
        return recording, role

    def _admit(self, request: Request) -> Role:
        """Return the most that the secret of a request allows, also after the session has ended."""
        session, secret = str(request.path_params["id"]), bearer_of(request)
        role = self._recordings.role(session, secret) if secret else None
        return role or authorized(self._context, request, session)[1]

    def _driven(self, request: Request) -> ServerSession:
        server_session, role = authorized(self._context, request, str(request.path_params["id"]))
        check_drives(role)
        return server_session


def _refused(error: CommandError) -> HttpRefusedError:
    status = _STATUS.get(ErrorCode(error.code), HTTPStatus.CONFLICT)
    return HttpRefusedError.of(error.refusal, status)


def _shown(request: Request, recording: Recording, status: HTTPStatus = HTTPStatus.OK) -> Response:
    headers = {}
    if status is HTTPStatus.CREATED:
        path = f"/v1/sessions/{recording.session}/recordings/{recording.id}"
        headers["Location"] = own_path(request, path)
    return json_response(recording, status, headers)


class RangedFile(FileResponse):
    """Sends a file, or the part that `Range` names; else 400 or 416, `bad_range`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file or the refusal."""
        refusal: Response | None = None

        async def checked(message: Message) -> None:
            nonlocal refusal
            if message["type"] == "http.response.start" and message["status"] in _RANGE_REFUSALS:
                refusal = _range_refusal(message)
            if refusal is None:
                await send(message)

        await super().__call__(scope, receive, checked)
        if refusal is not None:
            await refusal(scope, receive, send)


def _range_refusal(start: Message) -> Response:
    status = HTTPStatus(start["status"])
    refusal = error_response(status, Refusal("bad_range", _RANGE_REFUSALS[status], "Range"))
    for name, value in start["headers"]:
        if name.lower() == b"content-range":  # tells the length of the file
            refusal.headers["Content-Range"] = value.decode("latin-1")
    return refusal
