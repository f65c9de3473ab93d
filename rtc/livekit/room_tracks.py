"""The published tracks of a room: they follow the session's streams, and are repaired when lost.

A track is made from the `media.init` of its stream, and again when that changes. The `media.init`
events outlive a room, so the next room begins with them.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from livekit import rtc

from reverie.rtc.livekit.errors import NotPublishedError
from reverie.rtc.livekit.options import BridgeOptions
from reverie.rtc.livekit.picture_track import PictureShape, PictureTrack
from reverie.rtc.livekit.sound_track import SoundTrack
from reverie.sessions import Session
from reverie.sessions.protocol.media_events import MediaChunk, MediaInit

VOICE = "voice"
"""The stream of synthesized speech (`docs/protocol.md`)."""


class RoomTracks:
    """The tracks of one room."""

    def __init__(
        self, session: Session, participant: rtc.LocalParticipant, options: BridgeOptions
    ) -> None:
        """Publish nothing yet."""
        self.video: PictureTrack | None = None
        self._stream: str | None = None  # the one that is shown: the first that has pictures
        self._session = session
        self._participant = participant
        self._options = options
        self._sounds: dict[str, SoundTrack] = {}
        self._lock = asyncio.Lock()  # without it a track could be published twice

    async def open(self, inits: Mapping[str, MediaInit]) -> None:
        """Publish the known streams of the session.

        Raises:
            NotPublishedError: the room did not take it.
        """
        for init in inits.values():
            await self.begin(init)

    async def begin(self, init: MediaInit) -> None:
        """Publish a stream; do nothing when it is published in this shape.

        Raises:
            NotPublishedError: the room did not take it.
        """
        async with self._lock:
            if init.kind == "audio":
                await self._begin_sound(init)
            else:
                await self._begin_pictures(init)

    async def show(self, chunk: MediaChunk) -> None:
        """Show a picture or play a piece of sound when its time comes."""
        sound = self._sounds.get(chunk.stream)
        if sound is not None:
            await sound.play(self._session.samples(chunk))
        elif self.video is not None and chunk.stream == self._stream:
            await self.video.show(self._session.picture(chunk))

    async def cut(self) -> None:
        """Drop media that was not shown or played yet."""
        for sound in self._sounds.values():
            sound.cut()
        if self.video is not None:
            await self.video.cut()

    def cancel_speech(self) -> None:
        """Drop the unplayed rest of an interrupted utterance."""
        if VOICE in self._sounds:
            self._sounds[VOICE].cut()

    async def mend(self) -> bool:
        """Publish lost tracks again; return whether the room has all tracks."""
        async with self._lock:
            tracks = self._tracks()
            for track in tracks:
                await track.verify()
                with suppress(NotPublishedError):
                    await track.publish()
            return all(track.offered for track in tracks)

    async def check(self) -> bool:
        """Unpublish tracks that the server no longer takes; return whether there were none."""
        async with self._lock:
            return all([await track.check() for track in self._tracks()])

    async def close(self, *, gone: bool = False) -> None:
        """Unpublish all tracks, unless the room is gone."""
        video, self.video = self.video, None
        sounds, self._sounds = self._sounds, {}
        try:
            if video is not None:
                await video.close(gone=gone)
        finally:
            for sound in sounds.values():
                await sound.close(gone=gone)

    def _tracks(self) -> list[SoundTrack | PictureTrack]:
        return [*self._sounds.values(), *([self.video] if self.video is not None else [])]

    async def _begin_pictures(self, init: MediaInit) -> None:
        self._stream = self._stream or init.stream
        if self._stream != init.stream:
            return
        shape = PictureShape(init.width, init.height, init.rate_hz)
        if self.video is not None and self.video.shape == shape:
            return
        before, self.video = self.video, None
        if before is not None:
            await before.close()
        self.video = PictureTrack(self._participant, shape, self._options)
        await self.video.publish()

    async def _begin_sound(self, init: MediaInit) -> None:
        rate_hz = round(init.rate_hz)
        before = self._sounds.get(init.stream)
        if before is not None:
            if (before.rate_hz, before.channels) == (rate_hz, init.channels):
                return
            await before.close()
        sound = SoundTrack(self._participant, init.stream, rate_hz, init.channels, self._options)
        self._sounds[init.stream] = sound
        await sound.publish()
