"""Whether the server still takes a track: it reports on arrivals about once a second.

A server that removes a publication says so in a message that the SDK ignores. The SDK keeps the
publication, continues to send, and counts as before. Only the reports stop.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from livekit import rtc

SILENT_CHECKS = 4
"""A track without a report in so many checks in a row is no longer taken."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Counters from the statistics of one track.

    Attributes:
        reported: time and source of the last report; None before the first.
        sent: packets that were sent.
        answered: connectivity checks that the server has answered.
    """

    reported: tuple[int, int] | None
    sent: int
    answered: int

    @classmethod
    def read(cls, stats: Sequence[rtc.stats.RtcStats]) -> "Traffic":
        """Read them from the statistics that the SDK gives."""
        reported, sent, answered = None, 0, 0
        for each in stats:
            match each.WhichOneof("stats"):
                case "remote_inbound_rtp":
                    of = each.remote_inbound_rtp
                    reported = max(reported or (0, 0), (of.rtc.timestamp, of.stream.ssrc))
                case "outbound_rtp":
                    sent += each.outbound_rtp.sent.packets_sent
                case "candidate_pair":
                    answered += each.candidate_pair.candidate_pair.responses_received
        return cls(reported, sent, answered)


class ReportWatch:
    """Follows one track from check to check.

    A check counts as silent only if the track sent packets and the server answered meanwhile: a
    track that sends nothing gets no reports, and the SDK repairs a hanging connection. A server
    that has never reported is not judged.
    """

    def __init__(self) -> None:
        self._before: Traffic | None = None
        self._silent = 0

    def is_taken(self, now: Traffic) -> bool:
        """Tell whether the server still takes the track, as far as is known."""
        before, self._before = self._before, now
        if before is None or now.reported is None or now.reported != before.reported:
            self._silent = 0
        elif now.sent > before.sent and now.answered > before.answered:
            self._silent += 1
        return self._silent < SILENT_CHECKS
