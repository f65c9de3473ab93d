"""Recording one session, and clips of its last seconds."""

import logging
from collections.abc import Mapping

import numpy as np

from reverie.media import Codec, Piece
from reverie.media.files.replay import Replay
from reverie.sessions.protocol.commands import AnyCommand, Command, Playhead, PushMedia
from reverie.sessions.protocol.errors import CommandError, ErrorCode
from reverie.sessions.protocol.events import (
    AnyEvent,
    ArtifactCompleted,
    ArtifactCreated,
    ArtifactUpdated,
    Error,
)
from reverie.sessions.recording.media_tap import MediaTap
from reverie.sessions.recording.recording import Keys, Kind, RecordedInput, Recording, new_id
from reverie.sessions.recording.recording_writer import RecordingWriter
from reverie.sessions.recording.recordings import FAILURES, Recordings
from reverie.sessions.runtime.session_context import SessionContext

logger = logging.getLogger(__name__)

_MESSAGES: Mapping[str, str] = {
    "disk_full": "the disk is full; what was recorded until then is kept",
    "disk_slow": "the disk does not keep up; what was recorded until then is kept",
    "keep_bytes": "all recordings together are as large as allowed (keep_bytes)",
    "keep_bytes_per_owner": "the owner's recordings are as large as allowed (keep_bytes_per_owner)",
    "keep_bytes_per_address": "the recordings from your address are as large as allowed "
    "(keep_bytes_per_address)",
}


class SessionRecorder:
    """Starts and stops the recordings and clips of one session. Never waits."""

    def __init__(
        self,
        context: SessionContext,
        recordings: Recordings | None,
        keys: Keys | None,
        address: str = "",
    ) -> None:
        """Record nothing yet.

        Args:
            recordings: where they are kept; None: nothing can be recorded.
            keys: who may fetch them.
            address: the network address that opened the session; empty: it does not count.
        """
        self._address = address
        self._state = context.state
        self._attached = context.attached
        self._views = context.views
        self._inputs = context.inputs
        self._tap = MediaTap(context.outputs)
        self._recordings = recordings if recordings and recordings.options.enabled else None
        if self._recordings is not None:
            context.views.recording = self._recordings.options
        self._keys = keys
        self._writer: RecordingWriter | None = None
        self._clipping = False
        self._replay: Replay | None = None

    def start(self, *, inputs: bool = False) -> Recording:
        """Begin to record what the session puts out.

        Args:
            inputs: also record the pictures that are pushed, to a file for each stream of them.

        Raises:
            CommandError: it is being recorded already, or cannot be.
        """
        recordings, keys = self._usable()
        if self._writer is not None:
            text = f"recording {self._state.recording} runs already"
            raise CommandError(ErrorCode.ALREADY_RECORDING, text)
        if not self._tap.has_pictures:
            raise CommandError(ErrorCode.NOTHING_TO_RECORD, "there is no video stream to record")
        streams = self._inputs.watch(self._pushed) if inputs else ()
        if inputs and not streams:
            text = "the program takes no pictures"
            raise CommandError(ErrorCode.NOTHING_TO_RECORD, text, field="inputs")
        try:
            recordings.make_room(keys, self._address)
        except CommandError:
            self._inputs.watch(None)
            raise
        recording = self._new("recording", recordings, streams)
        self._created(recording)
        self._writer = recordings.begin(
            recording, keys, self._tap.sounds, self._told, self._address
        )
        self._state.recording = recording.id
        self._tap.add(self._writer)
        self._attached.overhear(self._overheard)
        self._views.changed()
        return recording

    def stop(self, reason: str = "stopped") -> str:
        """End the running recording, and return its id.

        Raises:
            CommandError: none is running.
        """
        writer, id = self._writer, self._state.recording
        if writer is None or id is None:
            raise CommandError(ErrorCode.NOT_RECORDING, "nothing is being recorded")
        writer.stop(reason)
        self._let_go()
        return id

    def clip(self, seconds: float) -> Recording:
        """Keep the last seconds, as far as they are in memory.

        Where no client has watched through an encoder yet, the first call begins to keep them.

        Raises:
            CommandError: nothing is in memory, or the previous clip is not finished.
        """
        recordings, keys = self._usable()
        groups = self._replay.last(round(seconds * 1e6)) if self._replay else ()
        if not groups:
            text = f"no media is kept for clips yet (clip_s is {recordings.options.clip_s:g})"
            if self._replay is None and self._hold(recordings):
                text = "no picture was encoded so far; the last seconds are kept from now on"
            raise CommandError(ErrorCode.NOTHING_TO_RECORD, text)
        if self._clipping:
            text = "the previous clip is not finished"
            raise CommandError(ErrorCode.TOO_MANY, text, retry_after_s=1.0)
        recordings.make_room(keys, self._address)
        self._clipping = True
        clip = self._new("clip", recordings)
        self._created(clip)
        recordings.keep_clip(clip, keys, groups, self._tap.sounds, self._told, self._address)
        return clip

    def watched_in(self, codec: Codec) -> None:
        """Begin to keep the last seconds, once a client watches through an encoder."""
        if self._recordings is not None and self._replay is None and codec is not Codec.RGB24:
            self._hold(self._recordings)

    def _hold(self, recordings: Recordings) -> bool:
        """Begin to keep the last seconds; return whether there is anything to keep."""
        options = recordings.options
        if not (options.clip_s and self._tap.has_pictures):
            return False
        self._replay = Replay(round(options.clip_s * 1e6), options.clip_bytes)
        self._tap.add(self._replay)
        return True

    def end(self) -> None:
        """End what is running, because the session has ended."""
        if self._writer is not None:
            self.stop("session_over")
        if self._replay is not None:
            self._tap.remove(self._replay)

    def _usable(self) -> tuple[Recordings, Keys]:
        if self._recordings is None or self._keys is None:
            text = "recording is not enabled (recordings.enabled)"
            raise CommandError(ErrorCode.NOT_ENABLED, text)
        return self._recordings, self._keys

    def _pushed(self, stream: str, piece: Piece) -> None:
        if self._writer is not None and stream in self._writer.inputs:
            self._writer.inputs[stream].picture(np.asarray(piece.data, np.uint8))

    def _new(self, kind: Kind, recordings: Recordings, streams: tuple[str, ...] = ()) -> Recording:
        state = self._state
        return Recording(
            id=new_id(),
            session=state.session,
            kind=kind,
            model=state.model,
            program=state.program,
            seed=state.seed,
            started_s=recordings.now_s(),
            inputs=tuple(RecordedInput(stream=stream) for stream in streams),
        )

    def _created(self, recording: Recording) -> None:
        created = ArtifactCreated(kind=recording.kind, name=recording.id, chunk=self._state.chunk)
        self._attached.tell(created)

    def _told(self, recording: Recording) -> None:
        """Tell the attachments the progress of a recording."""
        if recording.state == "running":
            self._attached.tell(
                ArtifactUpdated(
                    kind=recording.kind,
                    name=recording.id,
                    frames=recording.frames,
                    duration_us=recording.duration_us,
                    size_bytes=recording.size_bytes,
                )
            )
            return
        if recording.kind == "clip":
            self._clipping = False
        elif recording.id == self._state.recording:  # it has ended by itself
            self._let_go()
        if recording.reason in FAILURES or recording.reason in _MESSAGES:
            logger.error("recording %s has ended: %s", recording.id, recording.reason)
            message = _MESSAGES.get(recording.reason, "the recording failed")
            self._attached.tell(Error(code=recording.reason, message=message))
        self._attached.tell(
            ArtifactCompleted(
                kind=recording.kind,
                name=recording.id,
                reason=recording.reason,
                frames=recording.frames,
                duration_us=recording.duration_us,
                size_bytes=recording.size_bytes,
                left_out=recording.left_out,
            )
        )

    def _let_go(self) -> None:
        if self._writer is not None:
            self._tap.remove(self._writer)
        self._writer = self._state.recording = None
        self._attached.overhear(None)
        self._inputs.watch(None)
        self._views.changed()

    def _overheard(self, said: AnyEvent | AnyCommand) -> None:
        if self._writer is None or isinstance(said, Playhead | PushMedia):
            return
        kind = "command" if isinstance(said, Command) else "event"
        self._writer.line(kind, said.model_dump_json())
