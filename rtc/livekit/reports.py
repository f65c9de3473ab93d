"""Whether the server still takes a track: it reports on what arrives, about once a second.

A server that takes a publication away says so in a message that the SDK passes over. The SDK keeps
the publication, goes on sending, and counts as before. Only the reports cease.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from livekit import rtc

SILENT_CHECKS = 4
"""After so many checks in a row without a report a track is no longer taken."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the statistics of one track tell.

    Attributes:
        reported: which report was the last, and when it came; None before the first.
        sent: packets of the track that were sent.
        answered: times that the server has answered whether the connection still works.
    """

    reported: tuple[int, int] | None
    sent: int
    answered: int

    @classmethod
    def read(cls, stats: Sequence[rtc.stats.RtcStats]) -> "Traffic":
        """Take it from what the SDK tells of a track."""
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

    A check counts as silent only if the track was sent and the server was heard meanwhile: a track
    that rests gets no reports, and a connection that hangs is the SDK's to mend. A server that has
    never reported is not judged.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
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
