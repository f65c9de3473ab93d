"""When what one peer is sent is played: bursts evenly, and no later than has to be."""

from reverie.media.pacer import Pacer
from reverie.rtc.live_edge import LiveEdge


class PeerClock:
    """Maps media time to the clock of this process, for all streams of one peer. Pure."""

    def __init__(self) -> None:
        self._pacer = Pacer()
        self._edge = LiveEdge()
        self._offset_us: int | None = None  # of the pacer, from media time to now

    def picture_due_us(self, pts_us: int, now_us: int) -> int:
        """Return when to send a picture that has come now; it may be past."""
        due_us = self._due_us(pts_us, now_us)
        return due_us - self._edge.shift_us(due_us - now_us, now_us)

    def sound_due_us(self, pts_us: int, now_us: int) -> int:
        """Likewise of sound, which goes with the pictures."""
        return self._due_us(pts_us, now_us) - self._edge.shifted_us

    def begin_anew(self) -> None:
        """Send what comes next at once: what came before it was cut."""
        self._pacer.begin_anew()

    def _due_us(self, pts_us: int, now_us: int) -> int:
        due_us = self._pacer.due_us(pts_us, now_us)
        if due_us - pts_us != self._offset_us:
            self._offset_us = due_us - pts_us
            self._edge.begin_anew()
        return due_us
