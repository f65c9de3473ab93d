"""`connect`: a session on a server, for Python programs."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Literal

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from reverie.rtc.errors import BadMessageError, ConnectionLostError, ServerRefusedError
from reverie.rtc.remote import RemoteSession
from reverie.rtc.remote_link import LinkOptions
from reverie.rtc.strict_json import parse_object
from reverie.sessions import BadRequestError, SessionError, check_opening

REQUEST_S = 30.0

UNDO_S = 5.0
"""For ending a session that was opened for somebody who gave up."""


class _Opened(BaseModel):
    """What the client needs of the answer to a request for a session."""

    model_config = ConfigDict(frozen=True)

    id: str
    token: str


@asynccontextmanager
async def connect(
    url: str,
    *,
    model: str | None = None,
    program: str | None = None,
    prompt: str = "",
    seed: int | None = None,
    parameters: Mapping[str, float] | None = None,
    voice: bool = False,
    session: str | None = None,
    token: str | None = None,
    role: Literal["driver", "viewer"] = "driver",
    codecs: Sequence[str] = ("rgb24", "pcm16"),
    give_up_s: float = 30.0,
    owner: str | None = None,
) -> AsyncIterator[RemoteSession]:
    """Open a session on a server, or attach to one, for as long as the block lasts.

    A session that was opened here ends with the block; one that was attached to goes on.

    Args:
        url: of the server, such as `http://127.0.0.1:8000`.
        model: what the server calls it; None takes its first.
        program: None takes the model's first.
        prompt: what the world is to be at first.
        seed: None lets the server choose.
        parameters: of the program.
        voice: have what the model says spoken, as the audio stream `voice`.
        session: attach to this one, with its `token`, and open none.
        token: of that session; its watch token is for viewers.
        role: only one drives.
        codecs: what frames and sound may come in, best first; `rgb24` and `pcm16` are exact. Name
            no codec of sound (`opus`, `pcm16`) to be sent none.
        give_up_s: how long to try to come back after a drop.
        owner: the secret of the owner to open it for, as this server issued it; None: a new one.

    Raises:
        BadRequestError: the server cannot open such a session; names the field.
        ServerRefusedError: the server refuses for another reason, such as being full.
        ConnectionLostError: the server cannot be reached.
        SessionEndedError: the session to attach to is over, or does not let us in.
    """
    owned = session is None
    if session is None:
        check_opening(prompt, seed, dict(parameters or {}))  # JSON cannot even say all that is odd
        wanted: dict[str, object] = {
            "model": model,
            "program": program,
            "prompt": prompt,
            "seed": seed,
            "voice": voice or None,
        }
        wanted["parameters"] = dict(parameters or {})
        opened = await _open_safely(url, "", wanted, owner)
        session, token = opened.id, opened.token
    if token is None:
        raise ValueError("attaching to a session needs its token")
    options = LinkOptions(_socket_url(url, session), token, role, tuple(codecs), give_up_s)
    async with _attached(url, session, options, owned) as remote:
        yield remote


def _attached(
    url: str, session: str, options: LinkOptions, owned: bool
) -> AbstractAsyncContextManager[RemoteSession]:
    fork = partial(_forked, url, session, options)
    return _running(RemoteSession(session, options, owned, fork))


@asynccontextmanager
async def _forked(
    url: str, session: str, options: LinkOptions, chunk: int | None
) -> AsyncIterator[RemoteSession]:
    wanted = {} if chunk is None else {"chunk": chunk}
    opened = await _open_safely(url, f"/{session}/fork", wanted, options.token)
    socket_url = _socket_url(url, opened.id)
    attaching = replace(options, url=socket_url, token=opened.token)
    async with _attached(url, opened.id, attaching, owned=True) as remote:
        yield remote


@asynccontextmanager
async def _running(remote: RemoteSession) -> AsyncIterator[RemoteSession]:
    try:
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(remote.run(), name=f"remote {remote.id}")
            async with remote:
                await remote.attached()
                yield remote
            running.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        error = group.exceptions[0]  # what the block raised, as it raised it
        raise error from error.__cause__


async def _open_safely(
    url: str, path: str, wanted: Mapping[str, object], secret: str | None
) -> _Opened:
    """Open a session; cancelled, leave none behind that nobody knows of and that holds a place."""
    opening = asyncio.create_task(_open(url, path, wanted, secret), name="open a session")
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        with suppress(SessionError, TimeoutError):
            async with asyncio.timeout(UNDO_S):
                await _end(url, await opening)
        raise


async def _end(url: str, opened: _Opened) -> None:
    address = f"{url.rstrip('/')}/v1/sessions/{opened.id}"
    with suppress(httpx.TransportError):
        async with httpx.AsyncClient(timeout=UNDO_S, trust_env=False) as client:
            await client.delete(address, headers={"Authorization": f"Bearer {opened.token}"})


async def _open(url: str, path: str, wanted: Mapping[str, object], secret: str | None) -> _Opened:
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    body = {name: value for name, value in wanted.items() if value is not None}
    try:
        async with httpx.AsyncClient(timeout=REQUEST_S, trust_env=False) as client:
            address = f"{url.rstrip('/')}/v1/sessions{path}"
            answer = await client.post(address, json=body, headers=headers)
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise ConnectionLostError(f"{url} cannot be reached: {error}") from None
    if answer.status_code != httpx.codes.CREATED:
        raise _refused(answer)
    try:
        return _Opened.model_validate(parse_object(answer.content))
    except (BadMessageError, ValidationError):
        raise ServerRefusedError("bad_answer", "the server does not speak this protocol") from None


def _refused(answer: httpx.Response) -> SessionError:
    try:
        error = parse_object(answer.content)["error"]
    except (BadMessageError, KeyError):
        error = None
    told = error if isinstance(error, dict) else {}
    code = str(told.get("code", f"http_{answer.status_code}"))
    message = str(told.get("message", answer.reason_phrase))
    field, retry_after_s = told.get("field"), told.get("retry_after_s")
    if answer.status_code == httpx.codes.BAD_REQUEST and isinstance(field, str):
        return BadRequestError(code, message, field=field)
    after_s = float(retry_after_s) if isinstance(retry_after_s, int | float) else None
    return ServerRefusedError(code, message, retry_after_s=after_s)


def _socket_url(url: str, session: str) -> str:
    scheme, _, rest = url.rstrip("/").partition("://")
    return f"{'wss' if scheme == 'https' else 'ws'}://{rest}/v1/sessions/{session}/ws"
