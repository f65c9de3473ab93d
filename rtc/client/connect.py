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

from reverie.rtc.client.remote_link import LinkOptions, read_refusal
from reverie.rtc.client.remote_session import RemoteSession
from reverie.rtc.wire.errors import BadMessageError, ConnectionLostError, ServerRefusedError
from reverie.rtc.wire.strict_json import parse_object
from reverie.sessions import BadRequestError, SessionError, check_opening
from reverie.sessions.protocol.session_stats import SessionStats

REQUEST_S = 30.0

UNDO_S = 5.0
"""For ending a session whose opening was cancelled."""


class _Opened(BaseModel):
    """The fields of the answer to a request for a session that the client needs."""

    model_config = ConfigDict(frozen=True)

    id: str
    token: str


@dataclass(frozen=True, slots=True)
class _Server:
    """The address of a server, and which certificates to trust.

    Attributes:
        url: without a slash at its end.
        ssl: None uses the machine's trust store.
    """

    url: str
    ssl: tls.SSLContext | None

    @property
    def is_secure(self) -> bool:
        return self.url.lower().startswith("https://")

    @property
    def socket_ssl(self) -> tls.SSLContext | None:
        """The TLS context of a WebSocket; None for an unencrypted one."""
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

    A session that was opened here ends with the block; one that was attached to continues.

    Args:
        url: of the server, such as `http://127.0.0.1:8000`.
        model: its name on the server; None takes the first one.
        program: None takes the model's first.
        prompt: the first prompt.
        seed: None lets the server choose.
        parameters: of the program.
        voice: have what the model says spoken, as the audio stream `voice`.
        stop: texts that end an answer, in a program that takes turns.
        session: attach to this session with its `token`, instead of opening one.
        token: of that session; viewers use its watch token.
        role: a session has one driver.
        codecs: accepted codecs, best first; `rgb24` and `pcm16` are exact. Without a codec of sound
            (`opus`, `pcm16`) no sound is sent.
        give_up_s: how long to try to reconnect after a drop.
        owner: secret of the owner to open it for, as this server issued it; None: a new owner.
        ssl: which certificates to trust at an https address, such as those of a private authority
            (`ssl.create_default_context(cafile=...)`). None uses the machine's trust store, or the
            one in the environment (`SSL_CERT_FILE`, `SSL_CERT_DIR`).

    Raises:
        BadRequestError: the server cannot open such a session; names the field.
        ServerRefusedError: the server refuses for another reason, such as being full.
        ConnectionLostError: the server cannot be reached.
        SessionEndedError: the session to attach to has ended, or refuses this client.
    """
    owned = session is None
    server = _Server(url.rstrip("/"), ssl)
    if session is None:
        check_opening(prompt, seed, dict(parameters or {}))  # before JSON, which has no NaN
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
    stats = partial(_stats, server, session, options.token)
    return _running(RemoteSession(session, options, owned, fork, stats))


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
        error = group.exceptions[0]  # the exception of the block, without the group
        raise error from error.__cause__


async def _open_safely(
    server: _Server, path: str, wanted: Mapping[str, object], secret: str | None
) -> _Opened:
    """Open a session; when cancelled, end it, because it holds a place."""
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


async def _stats(server: _Server, session: str, token: str) -> SessionStats:
    headers = {"Authorization": f"Bearer {token}"}
    try:
        async with server.client(REQUEST_S) as client:
            address = f"{server.url}/v1/sessions/{session}/stats"
            answer = await client.get(address, headers=headers)
    except httpx.TransportError as error:
        raise ConnectionLostError(f"{server.url} cannot be reached: {error}") from None
    if answer.status_code != httpx.codes.OK:
        raise _refused(answer)
    try:
        return SessionStats.model_validate_json(answer.content)
    except ValidationError:
        raise ServerRefusedError("bad_answer", "the server does not speak this protocol") from None


def _refused(answer: httpx.Response) -> SessionError:
    told = read_refusal(answer.content, answer.status_code, answer.reason_phrase)
    if answer.status_code == httpx.codes.BAD_REQUEST and told.field is not None:
        return BadRequestError(told.code, told.message, field=told.field)
    return ServerRefusedError(
        told.code, told.message, field=told.field, retry_after_s=told.retry_after_s
    )
