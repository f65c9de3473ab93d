"""The callbacks of a room. They only record what has happened: they may neither wait nor raise.

They are registered while a room is served, and removed after it, so that the room is as it was.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from livekit import rtc

from reverie.rtc.livekit import vocabulary as names
from reverie.rtc.livekit.calls import Handler
from reverie.rtc.livekit.camera import Camera
from reverie.rtc.livekit.chat import TextIntake
from reverie.rtc.livekit.errors import InputRefusedError, RoomEnding
from reverie.rtc.livekit.inputs import parse_inputs
from reverie.rtc.livekit.rest_rules import Rest
from reverie.rtc.livekit.room_context import RoomContext

LOGGER = logging.getLogger(__name__)

FINAL = frozenset(
    {
        rtc.DisconnectReason.CLIENT_INITIATED,
        rtc.DisconnectReason.DUPLICATE_IDENTITY,
        rtc.DisconnectReason.PARTICIPANT_REMOVED,
        rtc.DisconnectReason.ROOM_DELETED,
        rtc.DisconnectReason.ROOM_CLOSED,
    }
)
"""Reasons of a disconnection after which coming back would be wrong."""

NOT_VIEWERS = frozenset(
    {
        rtc.ParticipantKind.PARTICIPANT_KIND_AGENT,
        rtc.ParticipantKind.PARTICIPANT_KIND_EGRESS,
        rtc.ParticipantKind.PARTICIPANT_KIND_INGRESS,
    }
)
"""Kinds of participants that do not count as viewers."""


class RoomListener(Protocol):
    """What the room session does about refusals and lost tracks."""

    def refuse(self, by: str, why: InputRefusedError) -> None:
        """Tell a participant that their request is refused."""

    def torn(self) -> None:
        """Note that the room may lack a track, and has forgotten the attributes."""


class RoomEvents:
    """The callbacks of one room session.

    Attributes:
        over: why the room has ended, once it has.
        unknown: packets whose sender is not in the room.
    """

    def __init__(
        self,
        context: RoomContext,
        room: rtc.Room,
        listener: RoomListener,
        camera: Camera,
        texts: TextIntake,
        calls: Mapping[str, Handler],
    ) -> None:
        """Register nothing yet; needs the running event loop."""
        self.over: asyncio.Future[RoomEnding] = asyncio.get_running_loop().create_future()
        self.unknown = 0
        self._context = context
        self._room = room
        self._listener = listener
        self._camera = camera
        self._texts = texts
        self._calls = calls
        self._callbacks: dict[str, Callable[..., None]] = {
            "participant_connected": self._came,
            "participant_attributes_changed": self._changed,
            "participant_disconnected": self._left,
            "data_received": self._data,
            "track_subscribed": self._track,
            "track_unsubscribed": self._no_track,
            "local_track_unpublished": self._unpublished,
            "reconnecting": self._away,
            "reconnected": self._back,
            "disconnected": self._gone,
        }

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Receive events inside the block, beginning with the room as it is."""
        topics = [names.TOPIC_PROMPT]
        for event, callback in self._callbacks.items():
            self._room.on(event, callback)  # type: ignore[arg-type]
        self._room.register_text_stream_handler(names.TOPIC_PROMPT, self._text)
        if self._context.options.takes_chat and self._take_chat():
            topics.append(names.TOPIC_CHAT)
        for method, handler in self._calls.items():
            self._room.local_participant.register_rpc_method(method, handler)
        try:
            self._release_keys()  # in a room before this one a release may have been lost
            self._sync_participants()
            self._context.rest_rules.rest(Rest.AWAY, False)
            yield
        finally:
            for method in self._calls:
                self._room.local_participant.unregister_rpc_method(method)
            for topic in topics:
                self._room.unregister_text_stream_handler(topic)
            for event, callback in self._callbacks.items():
                self._room.off(event, callback)  # type: ignore[arg-type]

    def _take_chat(self) -> bool:
        try:
            self._room.register_text_stream_handler(names.TOPIC_CHAT, self._text)
        except ValueError:
            LOGGER.warning(
                "%s is read by another handler: its lines are no prompts here", names.TOPIC_CHAT
            )
            return False
        return True

    def _sync_participants(self) -> None:
        """Update viewers, driver and cameras from the room as it is now."""
        here = set(viewers(self._room))
        for identity in self._context.rest_rules.viewers - here:
            self._context.rest_rules.left(identity)
        for identity in here - self._context.rest_rules.viewers:
            self._context.rest_rules.came(identity)
        driver = self._context.gateway.control_lock.driver
        if driver is not None and driver not in self._room.remote_participants:
            self._context.gateway.left(driver)
        for participant in self._room.remote_participants.values():
            for publication in participant.track_publications.values():
                if publication.track is not None:
                    self._track(publication.track, publication, participant)

    def _came(self, participant: rtc.RemoteParticipant) -> None:
        if is_viewer(participant):
            self._context.rest_rules.came(participant.identity)

    def _changed(self, _: dict[str, str], participant: rtc.Participant) -> None:
        """A participant may start to publish on behalf of another after joining."""
        if isinstance(participant, rtc.RemoteParticipant) and not is_viewer(participant):
            self._context.rest_rules.left(participant.identity)

    def _left(self, participant: rtc.RemoteParticipant) -> None:
        self._context.rest_rules.left(participant.identity)
        self._camera.gone(participant.identity)
        self._context.gateway.left(participant.identity)

    def _data(self, packet: rtc.DataPacket) -> None:
        if packet.topic != names.TOPIC_INPUT:
            return
        if packet.participant is None:
            self.unknown += 1
            return
        by = packet.participant.identity
        reliable = packet.kind == rtc.DataPacketKind.KIND_RELIABLE
        gateway, input_queue = self._context.gateway, self._context.input_queue
        try:
            gateway.check(by)
            gateway.admit(by)
            inputs = parse_inputs(packet.data, reliable=reliable)
            input_queue.put(by, inputs, self._context.session.view.controls)
        except InputRefusedError as why:
            if why.code == "rate_limited":
                input_queue.release(by)  # one of the lost packets may have held a release
            self._listener.refuse(by, why)
        else:
            gateway.steered(by)

    def _text(self, reader: rtc.TextStreamReader, by: str) -> None:
        try:
            self._context.gateway.check_saying(by)
            self._context.gateway.admit(by)
        except InputRefusedError as why:
            self._texts.refuse(reader, by, why)
        else:
            self._texts.put(reader, by)

    def _track(
        self,
        track: rtc.Track,
        publication: rtc.RemoteTrackPublication,
        participant: rtc.RemoteParticipant,
    ) -> None:
        self._camera.offer(track, publication.source, participant.identity)

    def _no_track(
        self,
        _: rtc.Track | None,
        publication: rtc.RemoteTrackPublication,
        participant: rtc.RemoteParticipant,
    ) -> None:
        self._camera.withdraw(publication.source, participant.identity)

    def _unpublished(self, _: rtc.LocalTrackPublication) -> None:
        self._listener.torn()

    def _away(self) -> None:
        self._context.rest_rules.rest(Rest.AWAY, True)
        self._release_keys()

    def _release_keys(self) -> None:
        driver = self._context.gateway.control_lock.driver
        if driver is not None:
            self._context.input_queue.release(driver)

    def _back(self) -> None:
        self._sync_participants()
        self._listener.torn()
        self._context.rest_rules.rest(Rest.AWAY, False)

    def _gone(self, reason: int) -> None:
        if self.over.done():
            return
        names_of = rtc.DisconnectReason
        known = reason in names_of.values()
        name = names_of.Name(names_of.ValueType(reason)).lower() if known else f"reason_{reason}"
        self.over.set_result(RoomEnding(name, "the room has ended", final=reason in FINAL))


def is_viewer(participant: rtc.RemoteParticipant) -> bool:
    """Tell whether a participant is a viewer: people are, agents and recorders are not."""
    on_behalf_of = participant.attributes.get(names.PUBLISH_ON_BEHALF)
    return participant.kind not in NOT_VIEWERS and not on_behalf_of


def viewers(room: rtc.Room) -> Iterator[str]:
    """Yield the identities of all viewers."""
    return (each.identity for each in room.remote_participants.values() if is_viewer(each))
