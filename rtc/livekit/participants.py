"""Who is in a room: people, and what is there for them."""

from collections.abc import Iterator

from livekit import rtc

from reverie.rtc.livekit.vocabulary import PUBLISH_ON_BEHALF

SERVANTS = frozenset(
    {
        rtc.ParticipantKind.PARTICIPANT_KIND_AGENT,
        rtc.ParticipantKind.PARTICIPANT_KIND_EGRESS,
        rtc.ParticipantKind.PARTICIPANT_KIND_INGRESS,
    }
)
"""Kinds of participants for which alone no world goes on."""


def is_viewer(participant: rtc.RemoteParticipant) -> bool:
    """Tell whether somebody counts as watching: people do, agents and recorders do not."""
    stands_for = participant.attributes.get(PUBLISH_ON_BEHALF)
    return participant.kind not in SERVANTS and not stands_for


def viewers(room: rtc.Room) -> Iterator[str]:
    """Yield the identities of all who watch."""
    return (each.identity for each in room.remote_participants.values() if is_viewer(each))
