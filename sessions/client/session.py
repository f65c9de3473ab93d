"""A session as a program uses it: the same in this process and over the network.

    async with engine.session(model="pocket", prompt="a frozen lake land") as session:
        await session.push_action({"move": "left"}, edge="press")
        async for event in session.stream():
            if event.type == "media.chunk":
                show(session.picture(event))

Subclasses define how a command gets to the session and how events come from it.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from itertools import count
from types import TracebackType
from typing import Literal, Self
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from reverie.sessions.client.decode import to_picture, to_samples
from reverie.sessions.client.event_stream import EventStream
from reverie.sessions.client.media_upload import MediaUpload
from reverie.sessions.protocol.commands import AnyCommand, Playhead
from reverie.sessions.protocol.errors import CommandError, NotPixelsError, NotSamplesError
from reverie.sessions.protocol.events import AnyEvent, Error, RequestAccepted
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit
from reverie.sessions.protocol.parsing import parse_command
from reverie.sessions.protocol.session_view import SessionView


class Session(MediaUpload):
    """One client's session with a model.

    Every command returns its id once it is certain to act, and raises `CommandError` when it was
    refused; then nothing has changed. A control's receipt comes as an event that names the id.

    Attributes:
        connection_changed: called with False when the connection to the session is lost, and with
            True once it is back; never for a session in this process. It must neither wait nor
            raise.
    """

    connection_changed: Callable[[bool], None] | None

    def __init__(self) -> None:
        self.connection_changed = None
        self._numbers = count()
        self._inits: dict[str, MediaInit] = {}  # the newest of each stream
        self._shown: MediaChunk | None = None  # ends a chunk that was not yet reported as seen
        self._seen_chunk: int | None = None
        self._streaming: ref[EventStream] | None = None  # the newest

    # --- the session ---

    @property
    @abstractmethod
    def id(self) -> str:
        """The session's id."""

    @property
    @abstractmethod
    def view(self) -> SessionView:
        """The session, as of the last event about it."""

    # --- commands ---

    async def push_text(
        self, text: str, *, mode: Literal["replace", "append", "turn"] = "replace"
    ) -> str:
        """Replace the prompt; mode `append` adds to it, and `""` clears it.

        With mode `turn` the text is said to the model, in a program that takes turns; the answer
        comes as `text.delta` events whose `answers` is the id that this returns.
        """
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
        """Release every held key."""
        return await self._command("release_all")

    async def update(
        self, *, prompt: str | None = None, reset: bool = False, **parameters: float
    ) -> str:
        """Change parameters, and with them the prompt or the world, all in one step."""
        return await self._command("update", prompt=prompt, reset=reset, parameters=parameters)

    async def interrupt(self, loop: str | None = None) -> str:
        """Drop what is unfinished or unseen, and continue from what was seen last.

        A `loop` is interrupted alone. A loop of text ends its utterance and does not begin it
        again; turns that it has not begun to answer are still answered.
        """
        return await self._command("interrupt", loop=loop)

    async def rewind(self, chunk: int) -> str:
        """Continue from an earlier chunk that is still kept."""
        return await self._command("rewind", chunk=chunk)

    async def pause(self) -> str:
        """Stop before the next step; idempotent."""
        return await self._command("pause")

    async def resume(self) -> str:
        """Continue; idempotent."""
        return await self._command("resume")

    async def step(self, count: int = 1) -> str:
        """While paused, put out some chunks and stay paused."""
        return await self._command("step", count=count)

    async def reset(self, *, seed: int | None = None) -> str:
        """Begin again under the prompt now in effect, with the same seed or another."""
        return await self._command("reset", seed=seed)

    async def snapshot(self, name: str = "default") -> str:
        """Keep the state after the newest shown chunk in memory."""
        return await self._command("snapshot", name=name)

    async def restore(self, name: str = "default") -> str:
        """Continue from a snapshot."""
        return await self._command("restore", name=name)

    async def record_start(self, *, inputs: bool = False) -> str:
        """Record what the session puts out; `artifact.created` names the recording.

        Args:
            inputs: also record the pictures that are pushed.
        """
        return await self._command("record_start", inputs=inputs)

    async def record_stop(self) -> str:
        """End the recording; `artifact.completed` follows once it is complete."""
        return await self._command("record_stop")

    async def clip(self, seconds: float = 10.0) -> str:
        """Keep the last seconds as a clip, if a client watched them through an encoder."""
        return await self._command("clip", seconds=float(seconds))

    async def request_key_frame(self, stream: str = "video") -> str:
        """Ask for a frame that can be decoded without earlier ones."""
        return await self._command("request_key_frame", stream=stream)

    @abstractmethod
    def fork(self, chunk: int | None = None) -> "AbstractAsyncContextManager[Session]":
        """Fork: open another session that continues from what was seen of this one.

            async with session.fork() as other: ...

        It has the prompt, the parameters and the world, no held keys and no snapshots, and it ends
        with the block. Both continue alike until they get different commands.

        Args:
            chunk: continue from this chunk, which must still be kept; None is the newest that was
                seen.

        Raises:
            BadRequestError: the program cannot be forked, or the chunk is no longer kept.
            SessionError: there is no place, this client only watches, or this session has ended.
        """

    @abstractmethod
    async def close(self) -> None:
        """End the session, and return when it has ended; idempotent."""

    # --- events ---

    def stream(self) -> EventStream:
        """Return the events from now on; an earlier stream ends.

        Asking for the next event after the last frame of a chunk, or sending a command then,
        reports the chunk as seen: the generation keeps pace with the iteration, and stops with it.
        The last event says why it is the last.
        """
        if self._streaming is not None and (before := self._streaming()) is not None:
            before.close()
        stream = EventStream(
            self._next, shown=self._note, back=self._tell_seen, left=lambda: self._listen(False)
        )
        self._listen(True)
        self._streaming = ref(stream)
        return stream

    def picture(self, chunk: MediaChunk) -> NDArray[np.uint8]:
        """Return the frame [H, W, 3] of a chunk that came out of `stream`.

        Raises:
            NotPixelsError: it needs a decoder, because its codec is not `rgb24`.
        """
        if chunk.stream not in self._inits:
            raise NotPixelsError(f"no media.init has come for stream {chunk.stream!r}")
        return to_picture(chunk, self._inits[chunk.stream])

    def samples(self, chunk: MediaChunk) -> NDArray[np.int16]:
        """Return the sound [N, C] of a chunk that came out of `stream`.

        Raises:
            NotSamplesError: it needs a decoder, because its codec is not `pcm16`.
        """
        if chunk.stream not in self._inits:
            raise NotSamplesError(f"no media.init has come for stream {chunk.stream!r}")
        return to_samples(chunk, self._inits[chunk.stream])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # --- for subclasses ---

    @abstractmethod
    async def _send(self, command: AnyCommand) -> RequestAccepted | Error:
        """Send a command and return its answer.

        Raises:
            SessionError: it cannot be answered: the session or the connection has ended.
        """

    @abstractmethod
    def _tell(self, command: Playhead) -> None:
        """Send a command that needs no answer. Never waits, never raises."""

    @abstractmethod
    async def _next(self) -> AnyEvent:
        """Wait for the next event that is not an answer. Safe to cancel: then nothing is lost.

        Raises:
            AttachmentEndedError: there are no more.
        """

    def _listen(self, listening: bool) -> None:
        """Note whether the program takes events from now on. Never waits, never raises."""

    def _note(self, event: AnyEvent) -> None:
        if isinstance(event, MediaInit):
            self._inits[event.stream] = event
        if isinstance(event, MediaChunk) and event.last:
            self._shown = event

    def _new_id(self) -> str:
        return f"c{next(self._numbers)}"

    def _tell_seen(self) -> None:
        shown, self._shown = self._shown, None
        if shown is not None:
            self._seen_chunk = shown.chunk
            self._tell(Playhead(id=self._new_id(), chunk=shown.chunk, pts_us=shown.pts_us))

    async def _command(self, type: str, **fields: object) -> str:
        self._tell_seen()
        return await self._ask(type, **fields)

    async def _ask(self, type: str, **fields: object) -> str:
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
