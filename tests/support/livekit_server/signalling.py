"""LiveKit's signalling, version 0: what each message of a client's leads to."""

import logging
import time

from livekit.protocol import models, rtc

from livekit_server.peer import Peer

SERVER_INFO = models.ServerInfo(version="1.9.0", protocol=16, region="test")
PING_EVERY_S = 5
PING_LIMIT_S = 30

log = logging.getLogger(__name__)


class Signalling:
    """Answers clients; keeps nothing itself."""

    async def welcome(self, peer: Peer) -> None:
        """Tell a participant where it is, and begin to send it what is published there."""
        room = peer.room
        codecs = [models.Codec(mime="video/VP8"), models.Codec(mime="audio/opus")]
        join = rtc.JoinResponse(
            room=room.info,
            participant=peer.info,
            other_participants=[each.info for each in room.others(peer) if not each.hidden],
            subscriber_primary=True,
            ping_interval=PING_EVERY_S,
            ping_timeout=PING_LIMIT_S,
            server_version=SERVER_INFO.version,
            server_info=SERVER_INFO,
            enabled_publish_codecs=codecs,
        )
        await peer.send(rtc.SignalResponse(join=join))
        peer.spawn(peer.subscriber.open())
        await room.announce(peer)
        for other in room.others(peer):
            for track in list(other.tracks):
                peer.offer_track(other, track)

    async def handle(self, peer: Peer, request: rtc.SignalRequest) -> None:
        """Do what a client asks for; what the server has not learnt is passed over."""
        kind = request.WhichOneof("message")
        log.debug("<- %s %s", peer.info.identity, kind)
        match kind:
            case "ping_req":
                said = request.ping_req.timestamp
                pong = rtc.Pong(last_ping_timestamp=said, timestamp=int(time.time() * 1000))
                await peer.send(rtc.SignalResponse(pong_resp=pong))
            case "trickle":
                is_sent = request.trickle.target == rtc.SignalTarget.PUBLISHER
                side = peer.publisher if is_sent else peer.subscriber
                await side.connection.trickle(request.trickle.candidateInit)
            case "offer":
                peer.spawn(_take_offer(peer, request.offer))  # it may wait for candidates
            case "answer":
                peer.subscriber.answered(request.answer.sdp)
            case "add_track":
                await _add_track(peer, request.add_track)
            case "mute":
                await _mute(peer, request.mute)
            case "subscription":
                _subscribe(peer, request.subscription)
            case "update_metadata":
                await _update(peer, request.update_metadata)


async def _take_offer(peer: Peer, offer: rtc.SessionDescription) -> None:
    sdp = await peer.publisher.answer(offer.sdp)
    await peer.lose_tracks(peer.publisher.dropped())
    # By its number a client knows which of its offers is answered; without it, a browser's gives up
    # after a while, however well the connection works.
    answer = rtc.SessionDescription(type="answer", sdp=sdp, id=offer.id)
    await peer.send(rtc.SignalResponse(answer=answer))


async def _add_track(peer: Peer, request: rtc.AddTrackRequest) -> None:
    if peer.faults.ignores_track():
        return
    info = peer.publisher.want(request)
    published = rtc.TrackPublishedResponse(cid=request.cid, track=info)
    await peer.send(rtc.SignalResponse(track_published=published))


async def _mute(peer: Peer, request: rtc.MuteTrackRequest) -> None:
    for track in peer.info.tracks:
        if track.sid == request.sid:
            track.muted = request.muted
    await peer.room.announce(peer)


def _subscribe(peer: Peer, request: rtc.UpdateSubscription) -> None:
    for track in request.track_sids:
        owner = peer.room.owner(track)
        if owner is None:
            continue
        if request.subscribe:
            peer.take_track(owner, track)
        else:
            peer.subscriber.leave(owner, track)


async def _update(peer: Peer, request: rtc.UpdateParticipantMetadata) -> None:
    info = peer.info
    info.metadata = request.metadata or info.metadata
    info.name = request.name or info.name
    for name, value in request.attributes.items():
        info.attributes[name] = value
        if not value:
            del info.attributes[name]
    await peer.room.announce(peer, also_to_itself=True)
    done = rtc.RequestResponse(request_id=request.request_id, reason=rtc.RequestResponse.Reason.OK)
    await peer.send(rtc.SignalResponse(request_response=done))
