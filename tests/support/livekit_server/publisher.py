"""What a participant sends: its tracks and its data packets."""

from collections.abc import Callable

from aiortc import MediaStreamTrack, RTCDataChannel
from livekit.protocol import models, rtc

from livekit_server.connection import Connection
from livekit_server.forwarder import Forwarder
from livekit_server.room import new_sid
from livekit_server.sdp import sent_tracks, started_at

RATE_BPS = 8_000_000
DATA_LABELS = ("_reliable", "_lossy")


class Publisher:
    """The peer connection on which the client makes the offers.

    Args:
        on_track: is called when a track begins.
        on_packet: is called with a data channel's label and what came in.

    Attributes:
        tracks: what is published, by the track's id.
    """

    def __init__(
        self,
        on_track: Callable[[models.TrackInfo], None],
        on_packet: Callable[[str, models.DataPacket], None],
    ) -> None:
        self.connection = Connection()
        self.tracks: dict[str, Forwarder] = {}
        self._on_track = on_track
        self._on_packet = on_packet
        self._wanted: dict[str, models.TrackInfo] = {}  # by the client's track id
        self._client_ids: dict[str, str] = {}  # the client's id of what each section sends, by mid
        self._sections: dict[str, str] = {}  # the mid of each published track, by the track's id
        self.connection.inner.on("track", self._begin)
        self.connection.inner.on("datachannel", self._listen)

    def want(self, request: rtc.AddTrackRequest) -> models.TrackInfo:
        """Expect a track that the client has announced; return how others will know it."""
        is_sound = request.type == models.TrackType.AUDIO
        info = models.TrackInfo(
            sid=new_sid("TR"),
            type=request.type,
            name=request.name,
            muted=request.muted,
            width=request.width,
            height=request.height,
            source=request.source,
            layers=request.layers,
            stereo=request.stereo,
            disable_red=request.disable_red,
            stream=request.stream,
            encryption=request.encryption,
            audio_features=request.audio_features,
            mime_type="audio/opus" if is_sound else "video/VP8",
        )
        self._wanted[request.cid] = info
        return info

    async def answer(self, sdp: str) -> str:
        """Take an offer, and return the answer to it."""
        if self.connection.inner.remoteDescription is not None:
            await self.connection.settled()
        self._client_ids = sent_tracks(sdp)
        await self.connection.describe_far(sdp, "offer")
        return started_at(await self.connection.answer(), RATE_BPS // 2000)

    def dropped(self) -> list[str]:
        """Return the tracks that the last offer does not send any more."""
        return [
            track
            for track, mid in self._sections.items()
            if track in self.tracks and mid not in self._client_ids
        ]

    def _begin(self, track: MediaStreamTrack) -> None:
        transceivers = self.connection.inner.getTransceivers()
        source = next(each for each in transceivers if each.receiver.track is track)
        assert source.mid is not None, "a section of an offer has a mid"
        info = self._wanted.pop(self._client_ids.get(source.mid, ""), None)
        if info is None:  # what a participant sends without having announced it is nobody's
            return
        info.mid = self._sections[info.sid] = source.mid
        self.tracks[info.sid] = Forwarder(source, RATE_BPS)
        self._on_track(info)

    def _listen(self, channel: RTCDataChannel) -> None:
        def on_message(raw: bytes | str) -> None:
            if channel.label in DATA_LABELS and isinstance(raw, bytes):
                self._on_packet(channel.label, models.DataPacket.FromString(raw))

        channel.on("message", on_message)
