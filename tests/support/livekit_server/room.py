"""A room: who is in it, and what each is told of the others."""

import secrets
import time
from typing import Generic, Protocol, TypeVar

from livekit.protocol import models, rtc

from livekit_server.forwarder import Forwarder


class Member(Protocol):
    """What a room has to know of a participant."""

    info: models.ParticipantInfo
    hidden: bool

    @property
    def tracks(self) -> dict[str, Forwarder]:
        """Return what it publishes, by the track's id."""

    async def send(self, response: rtc.SignalResponse) -> None:
        """Tell its client; what cannot be told any more is dropped."""

    def deliver(self, label: str, packet: bytes) -> None:
        """Send it a data packet."""

    def offer_track(self, owner: "Member", track: str) -> None:
        """Begin to send it a track of another's, unless it takes none by itself."""

    async def dismiss(self, reason: models.DisconnectReason) -> None:
        """Tell its client to go, and not to come back."""


M = TypeVar("M", bound=Member)


class Room(Generic[M]):
    """A room, which exists from when it is first heard of until it is deleted.

    Attributes:
        members: by identity.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.sid = new_sid("RM")
        self.members: dict[str, M] = {}

    @property
    def info(self) -> models.Room:
        """Return what clients are told of it."""
        return models.Room(
            sid=self.sid,
            name=self.name,
            num_participants=len(self.members),
            creation_time=int(time.time()),
            empty_timeout=300,
        )

    def others(self, member: Member) -> list[M]:
        """Return everybody else."""
        return [each for each in self.members.values() if each is not member]

    def owner(self, track: str) -> M | None:
        """Return who publishes a track."""
        return next((each for each in self.members.values() if track in each.tracks), None)

    async def announce(self, member: Member, *, also_to_itself: bool = False) -> None:
        """Tell the others how a participant is now."""
        member.info.version += 1
        update = rtc.SignalResponse(update=rtc.ParticipantUpdate(participants=[member.info]))
        if also_to_itself:
            await member.send(update)
        if not member.hidden:
            for other in self.others(member):
                await other.send(update)

    def relay(self, member: Member, label: str, packet: models.DataPacket) -> None:
        """Send a data packet on, to all or to those whom it names."""
        packet.participant_identity = member.info.identity
        packet.participant_sid = member.info.sid
        named = set(packet.destination_identities)
        raw = packet.SerializeToString()
        for other in self.others(member):
            if not named or other.info.identity in named:
                other.deliver(label, raw)


def new_sid(prefix: str) -> str:
    """Return an id that no other thing has."""
    return f"{prefix}_{secrets.token_hex(6)}"
