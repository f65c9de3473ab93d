"""The input streams of a session, and which one a push goes to."""

import asyncio
from collections.abc import Callable
from functools import partial

import numpy as np
from av import VideoFrame
from numpy.typing import NDArray

from reverie.media import (
    AudioIntake,
    IntakeLimits,
    Piece,
    RawAudio,
    RawVideo,
    Size,
    SpeechEdge,
    VideoIntake,
)
from reverie.models.contract.controls import Merge
from reverie.models.contract.spec import InputSpec, StreamKind
from reverie.sessions.attachments.attached_clients import AttachedClients
from reverie.sessions.attachments.attachment import CommandRequest
from reverie.sessions.backend.control_receipts import ControlReceipts
from reverie.sessions.backend.worker_channel import WorkerChannel
from reverie.sessions.protocol.commands import PushMedia
from reverie.sessions.protocol.errors import CommandError, ErrorCode
from reverie.sessions.protocol.events import Error, RequestAccepted
from reverie.sessions.state.limits import SessionLimits
from reverie.sessions.state.program_controls import ProgramControls
from reverie.sessions.state.session_state import InputState, SessionState
from reverie.sessions.streams.barge_in import OnSpeech
from reverie.sessions.streams.file_ingest import feed
from reverie.sessions.streams.input_queue import MediaPush
from reverie.sessions.streams.input_stream import InputStream

SOUND = frozenset({"opus", "pcm16", "pcmf32"})
"""Codecs of sound; all others are of pictures."""


class InputStreams:
    """All input streams of a session."""

    def __init__(
        self,
        state: SessionState,
        controls: ProgramControls,
        link: WorkerChannel,
        receipts: ControlReceipts,
        attached: AttachedClients,
        limits: SessionLimits,
    ) -> None:
        """Make the streams that the program's loops declare."""
        self._attached = attached
        self._streams: dict[str, InputStream] = {}
        self._over: CommandError | None = None
        self._bounds = IntakeLimits(limits.input_pixels)
        self._heard: OnSpeech = lambda stream, edge: None
        self._complained: set[str] = set()  # streams with a track whose error was told
        for name, spec in controls.inputs.items():
            state.inputs[name] = InputState(name, spec.kind, spec.merge)
            listens = spec.kind is StreamKind.AUDIO and not spec.capacity
            self._streams[name] = InputStream(
                spec,
                state.inputs[name],
                _intake(spec, limits),
                link,
                receipts,
                limits,
                self._hear if listens else None,
            )

    def listen(self, heard: OnSpeech) -> None:
        """Have `heard` called when speech begins or ends in a stream."""
        self._heard = heard

    def watch(self, watcher: Callable[[str, Piece], None] | None) -> tuple[str, ...]:
        """Have `watcher` called with each picture that goes to the loop, and its stream.

        Returns:
            The streams' names; there may be none.
        """
        videos = [each for each in self._streams.values() if each.spec.kind is StreamKind.VIDEO]
        for stream in videos:
            stream.watcher = watcher and partial(watcher, stream.spec.name)
        return tuple(stream.spec.name for stream in videos)

    def _hear(self, stream: str, edge: SpeechEdge) -> None:
        self._heard(stream, edge)

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Run the streams as children of the session."""
        for name, stream in self._streams.items():
            tasks.create_task(stream.run(), name=f"input {name}")

    def submit(self, request: CommandRequest, command: PushMedia) -> None:
        """Take a push; its answer comes when it is decoded and there is room for it.

        Raises:
            CommandError: there is no such stream, it takes another kind of media, or has no room.
        """
        if not command.data:
            raise CommandError(ErrorCode.MISSING, "the bytes are missing", field="data")
        stream = self._stream(command.stream, command.codec in SOUND)
        receipt = request.sender.outbox.put if command.last else None
        stream.put(MediaPush(_raw(command), command.id, partial(_answer, request), receipt))

    def put_video(
        self,
        stream: str | None,
        frame: NDArray[np.uint8] | VideoFrame,
        pts_us: int,
        *,
        last: bool = False,
    ) -> None:
        """Take a picture for an input stream; it is turned upright and scaled on a thread.

        Never waits. Attachments are told once about unreadable pictures, as `bad_media`.

        Args:
            stream: None takes the program's first that takes pictures.
            frame: pixels uint8 [H, W, 3] of any size, or a decoded frame; must not change after.
            pts_us: when it was taken, on the sender's own clock.
            last: it ends a clip, or is a single picture.

        Raises:
            CommandError: `unknown_stream`: the program takes no such media, so do not decode it;
                `too_many`: a `fifo` stream is full, so drop it; `closed`: the session has ended.
        """
        self._put(stream, RawVideo(frame, pts_us, last=last))

    def put_audio(
        self, stream: str | None, samples: NDArray[np.float32], rate_hz: int, pts_us: int
    ) -> None:
        """Take sound for an input stream; it is mixed and resampled on a thread. As `put_video`.

        Args:
            samples: float32 [samples, channels] in -1..1, mono or stereo.
            rate_hz: 8000 to 48,000.
        """
        self._put(stream, RawAudio(samples, pts_us, rate_hz=rate_hz))

    async def feed(self, stream: str | None, data: bytes) -> int:
        """Take a whole picture or clip for an input stream; return how many frames it had.

        Raises:
            CommandError: it cannot be read, or is not accepted in time.
        """
        return await feed(self._stream(stream, False), data, self._bounds)

    def shut(self, reason: str) -> None:
        """Refuse the waiting pushes, because the session has ended."""
        self._over = CommandError(ErrorCode.CLOSED, f"the session has ended: {reason}")
        for stream in self._streams.values():
            stream.shut(self._over)

    def _put(self, stream: str | None, raw: RawVideo | RawAudio) -> None:
        found = self._stream(stream, isinstance(raw, RawAudio))
        found.put(MediaPush(raw, "", self._complain_once(found.spec.name)))

    def _stream(self, name: str | None, sound: bool) -> InputStream:
        if self._over is not None:
            raise self._over
        kind = StreamKind.AUDIO if sound else StreamKind.VIDEO
        fitting = [each for each in self._streams.values() if each.spec.kind is kind]
        if name is None and fitting:
            return fitting[0]
        if name not in self._streams:
            known = ", ".join(self._streams) or "none"
            wanted = "no such input stream" if name else f"the program takes no {kind}"
            text = f"{wanted}; known: {known}"
            raise CommandError(ErrorCode.UNKNOWN_STREAM, text, field="stream")
        if self._streams[name] not in fitting:
            text = f"input stream {name!r} takes no {kind}"
            raise CommandError(ErrorCode.WRONG_TYPE, text, field="codec")
        return self._streams[name]

    def _complain_once(self, stream: str) -> Callable[[CommandError | None], None]:
        def done(error: CommandError | None) -> None:
            if error is None:
                self._complained.discard(stream)
            elif stream not in self._complained and error.code != ErrorCode.CLOSED:
                self._complained.add(stream)
                self._attached.tell(Error(code=error.code, message=error.message, field=stream))

        return done


def _intake(spec: InputSpec, limits: SessionLimits) -> VideoIntake | AudioIntake:
    bounds = IntakeLimits(limits.input_pixels)
    if spec.kind is StreamKind.AUDIO:
        return AudioIntake(round(spec.rate_hz), spec.channels, bounds)
    # A camera's pictures are taken as they come; a clip must keep its duration.
    rate_hz = spec.rate_hz if spec.merge is Merge.FIFO else 0.0
    return VideoIntake(Size(spec.width, spec.height), rate_hz, bounds)


def _raw(command: PushMedia) -> RawVideo | RawAudio:
    if command.codec in SOUND:
        return RawAudio(
            command.data,
            command.pts_us,
            command.codec,
            command.rate_hz,
            command.channels,
            command.last,
        )
    return RawVideo(
        command.data, command.pts_us, command.codec, command.width, command.height, command.last
    )


def _answer(request: CommandRequest, error: CommandError | None) -> None:
    command = request.command.id
    if error is None:
        request.answer(RequestAccepted(command=command))
        return
    request.answer(
        Error(
            code=error.code,
            message=error.message,
            field=error.field,
            command=command,
            retry_after_s=error.retry_after_s,
        )
    )
