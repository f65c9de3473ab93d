"""A session as a program uses it: the same in this process and over the network.

    async with engine.session(model="pocket", prompt="a frozen lake land") as session:
        await session.push_action({"move": "left"}, edge="press")
        async for event in session.stream():
            if event.type == "media.chunk":
                show(session.picture(event))

Subclasses say how a command gets to the session and how events come from it; all else is here.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from itertools import count
from types import TracebackType
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from reverie.sessions.commands import AnyCommand, Playhead
from reverie.sessions.errors import CommandError, NotPixelsError, SessionError
from reverie.sessions.events import (
    AnyEvent,
    Error,
    MediaChunk,
    MediaInit,
    RequestAccepted,
    SessionView,
)
from reverie.sessions.parsing import parse_command
from reverie.sessions.pixels import to_picture

STREAM_LEFT_S = 0.2
"""A loop over `stream` that was left by `break` is closed by asyncio a moment later."""


class Session(ABC):
    """One person's context with a model, for as long as they stay.

    Every command returns its id once it is sure to act, and raises `CommandError` when it was
    refused; then nothing has changed. A control's receipt comes as an event that names the id.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._inits: dict[str, MediaInit] = {}  # the newest of each stream
        self._not_streaming = asyncio.Event()
        self._not_streaming.set()

    # --- what a session is ---

    @property
    @abstractmethod
    def id(self) -> str:
        """The session's id."""

    @property
    @abstractmethod
    def view(self) -> SessionView:
        """The session, as it was when something of it was last told."""

    # --- what it can be told ---

    async def push_text(self, text: str, *, mode: Literal["replace", "append"] = "replace") -> str:
        """Say what the world should become; "" means that nothing in particular is wished for."""
        return await self._command("push_text", text=text, mode=mode)

    async def push_action(
        self,
        action: Mapping[str, str | float],
        *,
        edge: Literal["tap", "press", "release"] = "tap",
    ) -> str:
        """Tap, press or release keys, or move axes. A pressed key acts until its release."""
        return await self._command("push_action", action=dict(action), edge=edge)

    async def release_all(self) -> str:
        """Let go of every held key."""
        return await self._command("release_all")

    async def update(
        self, *, prompt: str | None = None, reset: bool = False, **parameters: float
    ) -> str:
        """Change parameters, and with them the prompt or the world, all in one step."""
        return await self._command("update", prompt=prompt, reset=reset, parameters=parameters)

    async def interrupt(self) -> str:
        """Drop what is unfinished or unseen, and go on from what was seen last."""
        return await self._command("interrupt")

    async def rewind(self, chunk: int) -> str:
        """Go on from an earlier chunk that is still kept."""
        return await self._command("rewind", chunk=chunk)

    async def pause(self) -> str:
        """Stop before the next step. Pausing twice is pausing once."""
        return await self._command("pause")

    async def resume(self) -> str:
        """Go on. Resuming what runs changes nothing."""
        return await self._command("resume")

    async def step(self, count: int = 1) -> str:
        """While paused, put out some chunks and stay paused."""
        return await self._command("step", count=count)

    async def reset(self, *, seed: int | None = None) -> str:
        """Begin again under the prompt now in effect, with the same seed or another."""
        return await self._command("reset", seed=seed)

    async def snapshot(self, name: str = "default") -> str:
        """Keep the state of the newest shown chunk in memory."""
        return await self._command("snapshot", name=name)

    async def restore(self, name: str = "default") -> str:
        """Go on from a kept state."""
        return await self._command("restore", name=name)

    async def request_key_frame(self, stream: str = "video") -> str:
        """Ask for a frame that can be decoded without earlier ones."""
        return await self._command("request_key_frame", stream=stream)

    @abstractmethod
    async def close(self) -> None:
        """End the session, and return when it has ended. Closing twice is closing once."""

    # --- what it says ---

    async def stream(self) -> AsyncGenerator[AnyEvent, None]:
        """Yield what happens, until the session or this attachment is over; the last one says why.

        Coming back for more after the last frame of a chunk says that the chunk was seen: the
        generation keeps to the pace of whoever iterates, and stops when they do.

        Raises:
            SessionError: somebody iterates already.
        """
        await self._begin_streaming()
        try:
            async with aclosing(self._events()) as events:
                async for event in events:
                    if isinstance(event, MediaInit):
                        self._inits[event.stream] = event
                    yield event
                    if isinstance(event, MediaChunk) and event.last:
                        self._tell(self._playhead(event))
        finally:
            self._not_streaming.set()

    def picture(self, chunk: MediaChunk) -> NDArray[np.uint8]:
        """Return the frame [H, W, 3] of a chunk that came out of `stream`.

        Raises:
            NotPixelsError: it needs a decoder, for its codec is not `rgb24`.
        """
        if chunk.stream not in self._inits:
            raise NotPixelsError(f"nothing is known of a stream {chunk.stream!r}")
        return to_picture(chunk, self._inits[chunk.stream])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # --- what a subclass brings ---

    @abstractmethod
    async def _send(self, command: AnyCommand) -> RequestAccepted | Error:
        """Send a command and return its answer.

        Raises:
            SessionError: it cannot be answered: the session or the connection is over.
        """

    @abstractmethod
    def _tell(self, command: Playhead) -> None:
        """Send what needs no answer. Never waits, never raises."""

    @abstractmethod
    def _events(self) -> AsyncGenerator[AnyEvent, None]:
        """Begin to take events and yield them, answers excepted; stop when it is closed."""

    async def _begin_streaming(self) -> None:
        try:
            async with asyncio.timeout(STREAM_LEFT_S):
                await self._not_streaming.wait()
        except TimeoutError:
            raise SessionError("the session is being streamed already") from None
        self._not_streaming.clear()

    def _new_id(self) -> str:
        return f"c{next(self._numbers)}"

    def _playhead(self, chunk: MediaChunk) -> Playhead:
        return Playhead(id=self._new_id(), chunk=chunk.chunk, pts_us=max(0, chunk.pts_us))

    async def _command(self, type: str, **fields: object) -> str:
        command = parse_command({"type": type, "id": self._new_id(), **fields})
        answer = await self._send(command)
        if isinstance(answer, Error):
            raise CommandError(
                answer.code,
                answer.message,
                field=answer.field,
                command=answer.command,
                retry_after_s=answer.retry_after_s,
            )
        return command.id
