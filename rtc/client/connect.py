"""`connect`: a session on a server, for Python programs."""

import asyncio
import ssl as tls
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from reverie.rtc.client.remote_link import LinkOptions
from reverie.rtc.client.remote_session import RemoteSession
from reverie.rtc.wire.errors import BadMessageError, ConnectionLostError, ServerRefusedError
from reverie.rtc.wire.strict_json import parse_object
from reverie.sessions import BadRequestError, SessionError, check_opening

REQUEST_S = 30.0

UNDO_S = 5.0
"""For ending a session that was opened for somebody who gave up."""


class _Opened(BaseModel):
    """What the client needs of the answer to a request for a session."""

    model_config = ConfigDict(frozen=True)

    id: str
    token: str


@dataclass(frozen=True, slots=True)
class _Server:
    """Where a server is, and whom to trust there.

    Attributes:
        url: without a slash at its end.
        ssl: None takes what this machine trusts.
    """

    url: str
    ssl: tls.SSLContext | None

    @property
    def is_secure(self) -> bool:
        return self.url.lower().startswith("https://")

    @property
    def socket_ssl(self) -> tls.SSLContext | None:
        """What a WebSocket is given: nothing where it is not encrypted."""
        return (self.ssl or tls.create_default_context()) if self.is_secure else None

    def socket_url(self, session: str) -> str:
        _, _, rest = self.url.partition("://")
        return f"{'wss' if self.is_secure else 'ws'}://{rest}/v1/sessions/{session}/ws"

    def client(self, limit_s: float) -> httpx.AsyncClient:
        verify = self.socket_ssl or False  # an unencrypted connection has nothing to verify
        return httpx.AsyncClient(timeout=limit_s, trust_env=False, verify=verify)


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
    stop: Sequence[str] = (),
    session: str | None = None,
    token: str | None = None,
    role: Literal["driver", "viewer"] = "driver",
    codecs: Sequence[str] = ("rgb24", "pcm16"),
    give_up_s: float = 30.0,
    owner: str | None = None,
    ssl: tls.SSLContext | None = None,
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
        stop: texts that end an answer, in a program that takes turns.
        session: attach to this one, with its `token`, and open none.
        token: of that session; its watch token is for viewers.
        role: only one drives.
        codecs: what frames and sound may come in, best first; `rgb24` and `pcm16` are exact. Name
            no codec of sound (`opus`, `pcm16`) to be sent none.
        give_up_s: how long to try to come back after a drop.
        owner: the secret of the owner to open it for, as this server issued it; None: a new one.
        ssl: whom to trust at an https address, such as a private certificate authority
            (`ssl.create_default_context(cafile=...)`). None trusts whom this machine trusts, or
            what the environment names (`SSL_CERT_FILE`, `SSL_CERT_DIR`).

    Raises:
        BadRequestError: the server cannot open such a session; names the field.
        ServerRefusedError: the server refuses for another reason, such as being full.
        ConnectionLostError: the server cannot be reached.
        SessionEndedError: the session to attach to is over, or does not let us in.
    """
    owned = session is None
    server = _Server(url.rstrip("/"), ssl)
    if session is None:
        check_opening(prompt, seed, dict(parameters or {}))  # JSON cannot even say all that is odd
        wanted: dict[str, object] = {
            "model": model,
            "program": program,
            "prompt": prompt,
            "seed": seed,
            "voice": voice or None,
            "stop": list(stop) or None,
        }
        wanted["parameters"] = dict(parameters or {})
        opened = await _open_safely(server, "", wanted, owner)
        session, token = opened.id, opened.token
    if token is None:
        raise ValueError("attaching to a session needs its token")
    options = LinkOptions(
        server.socket_url(session), token, role, tuple(codecs), give_up_s, ssl=server.socket_ssl
    )
    async with _attached(server, session, options, owned) as remote:
        yield remote


def _attached(
    server: _Server, session: str, options: LinkOptions, owned: bool
) -> AbstractAsyncContextManager[RemoteSession]:
    fork = partial(_forked, server, session, options)
    return _running(RemoteSession(session, options, owned, fork))


@asynccontextmanager
async def _forked(
    server: _Server, session: str, options: LinkOptions, chunk: int | None
) -> AsyncIterator[RemoteSession]:
    wanted = {} if chunk is None else {"chunk": chunk}
    opened = await _open_safely(server, f"/{session}/fork", wanted, options.token)
    attaching = replace(options, url=server.socket_url(opened.id), token=opened.token)
    async with _attached(server, opened.id, attaching, owned=True) as remote:
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
    server: _Server, path: str, wanted: Mapping[str, object], secret: str | None
) -> _Opened:
    """Open a session; cancelled, leave none behind that nobody knows of and that holds a place."""
    opening = asyncio.create_task(_open(server, path, wanted, secret), name="open a session")
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        with suppress(SessionError, TimeoutError):
            async with asyncio.timeout(UNDO_S):
                await _end(server, await opening)
        raise


async def _end(server: _Server, opened: _Opened) -> None:
    with suppress(httpx.TransportError):
        async with server.client(UNDO_S) as client:
            headers = {"Authorization": f"Bearer {opened.token}"}
            await client.delete(f"{server.url}/v1/sessions/{opened.id}", headers=headers)


async def _open(
    server: _Server, path: str, wanted: Mapping[str, object], secret: str | None
) -> _Opened:
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    body = {name: value for name, value in wanted.items() if value is not None}
    try:
        async with server.client(REQUEST_S) as client:
            address = f"{server.url}/v1/sessions{path}"
            answer = await client.post(address, json=body, headers=headers)
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise ConnectionLostError(f"{server.url} cannot be reached: {error}") from None
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
