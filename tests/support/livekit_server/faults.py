"""What goes wrong for a participant, as a test has asked for; all of it outlives a reconnection."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Faults:
    """The faults that one identity in one room has coming.

    Attributes:
        lost: how many more of its data packets of each kind get lost; kinds are the names of a
            `DataPacket`'s values, such as `user`, `stream_header` or `rpc_request`.
        doubled: the same, for packets that arrive twice.
        ignored_tracks: how many more of its tracks are not published when it asks.
        is_shut_out: whether it cannot connect.
    """

    lost: Counter[str] = field(default_factory=Counter)
    doubled: Counter[str] = field(default_factory=Counter)
    ignored_tracks: int = 0
    is_shut_out: bool = False

    def copies(self, kind: str) -> int:
        """Return how often a packet is to arrive, and count it."""
        if self.lost[kind]:
            self.lost[kind] -= 1
            return 0
        if self.doubled[kind]:
            self.doubled[kind] -= 1
            return 2
        return 1

    def ignores_track(self) -> bool:
        """Return whether a wish to publish goes unheard, and count it."""
        self.ignored_tracks -= (ignored := self.ignored_tracks > 0)
        return ignored
