"""The output streams of a session: making them, finding them, and running their encoders."""

import asyncio
from collections.abc import Callable, Iterable, Iterator

from reverie.media import AudioFanout, VideoFanout
from reverie.media.audio.espeak import Speech
from reverie.models.contract.spec import StreamKind, StreamSpec
from reverie.sessions.attachments.attached_clients import AttachedClients
from reverie.sessions.attachments.attachment import Attachment
from reverie.sessions.protocol.errors import CommandError, ErrorCode
from reverie.sessions.state.cancel_scopes import CancelScope, ScopeKind
from reverie.sessions.state.program_controls import ProgramControls
from reverie.sessions.state.session_state import SessionState, StreamState
from reverie.sessions.streams.audio_stream import AudioStream
from reverie.sessions.streams.pending_turns import PendingTurns
from reverie.sessions.streams.speech_stream import SpeechStream
from reverie.sessions.streams.text_stream import TextStream
from reverie.sessions.streams.video_stream import VideoStream

VOICE = "voice"
"""The name of the stream in which the server speaks a program's text."""

OpenFanout = Callable[[float], VideoFanout]
"""Frames a second -> a fan-out; tests set its limits."""

Output = VideoStream | AudioStream


class OutputStreams:
    """The output streams of a session, each with a cancel scope of its own.

    Iterating yields the media streams: video, then audio.
    """

    def __init__(
        self,
        state: SessionState,
        controls: ProgramControls,
        program: CancelScope,
        attached: AttachedClients,
        turns: PendingTurns,
        open_fanout: OpenFanout = VideoFanout,
    ) -> None:
        """Make the streams of every loop; cancelling a stream's scope ends it."""
        self._state = state
        self._videos: dict[str, VideoStream] = {}
        self._sounds: dict[str, AudioStream] = {}
        self._texts: dict[str, TextStream] = {}
        scopes = {loop.name: program.open(ScopeKind.LOOP, loop.name) for loop in controls.loops}
        kinds = {spec.kind for _, spec in controls.streams}
        self._heard_only = StreamKind.VIDEO not in kinds and StreamKind.AUDIO in kinds
        for loop, spec in controls.streams:
            if spec.kind is StreamKind.AUDIO:
                self.add_sound(spec, scopes[loop.name])
                continue
            stream = StreamState(spec.name, spec.kind, spec.rate_hz, loop.name)
            state.streams[spec.name] = stream
            scope = scopes[loop.name].open(ScopeKind.STREAM, spec.name)
            if spec.kind is StreamKind.VIDEO:
                video = VideoStream(stream, state, open_fanout(spec.rate_hz))
                self._videos[spec.name] = video
                scope.on_cancel(video.end)
            else:
                text = TextStream(stream, attached, turns)
                self._texts[spec.name] = text
                scope.on_cancel(text.end)

    def add_sound(self, spec: StreamSpec, scope: CancelScope) -> AudioStream:
        """Make an audio stream, before `start`; of a loop, or the server's own voice."""
        loop = scope.name if scope.kind is ScopeKind.LOOP else ""
        stream = StreamState(spec.name, spec.kind, spec.rate_hz, loop)
        self._state.streams[spec.name] = stream
        fanout = AudioFanout(spec.rate_hz, spec.channels)
        paces = self._heard_only and scope.kind is ScopeKind.LOOP
        sound = AudioStream(stream, self._state, fanout, paces)
        self._sounds[spec.name] = sound
        scope.open(ScopeKind.STREAM, spec.name).on_cancel(sound.end)
        return sound

    def add_voice(
        self, speech: Speech, scope: CancelScope, failed: Callable[[str], None]
    ) -> SpeechStream:
        """Speak the first text stream, of which there must be one; before `start`.

        Args:
            speech: what speaks.
            scope: cancelling it ends the stream.
            failed: called each time that a phrase could not be spoken.
        """
        shape = speech.shape
        spec = StreamSpec(
            VOICE, StreamKind.AUDIO, rate_hz=float(shape.rate_hz), channels=shape.channels
        )
        sound = self.add_sound(spec, scope)
        voice = SpeechStream(sound, speech, self._state.session, failed, follows=bool(self._videos))
        self.texts[0].voice = voice
        for video in self.videos[:1]:
            video.voice = voice
        return voice

    def __iter__(self) -> Iterator[Output]:
        yield from self._videos.values()
        yield from self._sounds.values()

    @property
    def videos(self) -> tuple[VideoStream, ...]:
        """The video streams, the program's first one first."""
        return tuple(self._videos.values())

    @property
    def sounds(self) -> tuple[AudioStream, ...]:
        """The audio streams."""
        return tuple(self._sounds.values())

    @property
    def texts(self) -> tuple[TextStream, ...]:
        """The text streams."""
        return tuple(self._texts.values())

    def text(self, name: str) -> TextStream:
        """Return the text stream of that name.

        Raises:
            CommandError: there is none.
        """
        if name not in self._texts:
            raise _unknown(self._texts)
        return self._texts[name]

    @property
    def have_unshown(self) -> bool:
        """Whether output waits for the first attachment."""
        return any(output.has_unshown for output in self)

    def video(self, name: str) -> VideoStream:
        """Return the video stream of that name.

        Raises:
            CommandError: there is none.
        """
        if name not in self._videos:
            raise _unknown(self._videos)
        return self._videos[name]

    def sound(self, name: str) -> AudioStream:
        """Return the audio stream of that name.

        Raises:
            CommandError: there is none.
        """
        if name not in self._sounds:
            raise _unknown(self._sounds)
        return self._sounds[name]

    def line_changed(self, attachment: Attachment) -> None:
        """Encode each video stream for what an attachment's line takes now."""
        for video in self.videos:
            video.line_changed(attachment)

    def show_again(self, attachment: Attachment) -> None:
        """Send an attachment the newest pictures again."""
        for video in self.videos:
            video.show_again(attachment)

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Run the encoders as children of the session, which ends when one of them fails."""
        for output in self:
            tasks.create_task(output.fanout.run(), name=f"encode {output.stream.name}")

    async def drain(self) -> None:
        """Return once everything published is in the outboxes. Safe to cancel."""
        for output in self:
            await output.fanout.drain()


def _unknown(streams: Iterable[str]) -> CommandError:
    known = ", ".join(streams) or "none"
    return CommandError(ErrorCode.UNKNOWN_STREAM, f"no such stream; known: {known}", field="stream")
