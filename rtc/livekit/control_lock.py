"""Who drives: one participant at a time, who hands over, leaves, or falls idle.

Pure: time comes in as an argument, and what follows from a change (keys let go of, everybody told)
is the caller's. A free seat is taken by whoever steers first, so that a room of one needs no
ceremony.
"""

from dataclasses import dataclass

from reverie.rtc.livekit.errors import SteeringError


@dataclass(frozen=True, slots=True)
class LockChange:
    """The seat has changed hands; None is nobody."""

    before: str | None
    now: str | None


class ControlLock:
    """The one seat of a world.

    Attributes:
        driver: the identity of who drives; None: the seat is free.
        asking: who asked for it last while it was taken; who drives may hand over to them.
    """

    def __init__(self, idle_s: float) -> None:
        """Begin with a free seat; a driver idle for `idle_s` gives way to whoever asks."""
        self.driver: str | None = None
        self.asking: str | None = None
        self._idle_s = idle_s
        self._active_s = 0.0

    def check(self, identity: str) -> None:
        """Accept that somebody may steer.

        Raises:
            SteeringError: `seat_taken`: somebody else drives.
        """
        if self.driver not in (None, identity):
            message = f"{self.driver!r} drives; ask with world.drive"
            raise SteeringError("seat_taken", message)

    def steer(self, identity: str, now_s: float) -> LockChange | None:
        """Note that somebody steers, who takes a free seat by it.

        Raises:
            SteeringError: `seat_taken`: somebody else drives.
        """
        self.check(identity)
        self._active_s = now_s
        return self._set_driver(identity)

    def take(self, identity: str, now_s: float) -> LockChange | None:
        """Take the seat if it is free, or if who has it is idle.

        Raises:
            SteeringError: `seat_taken`: somebody else drives, who now knows who asks.
        """
        idle_s = now_s - self._active_s
        if self.driver in (None, identity) or idle_s >= self._idle_s:
            self._active_s = now_s
            return self._set_driver(identity)
        self.asking = identity
        left_s = max(self._idle_s - idle_s, 0.0)
        message = f"{self.driver!r} drives, and gives way when idle for {self._idle_s:g} s"
        raise SteeringError("seat_taken", message, retry_after_s=round(left_s, 1))

    def hand(self, identity: str, to: str | None, now_s: float) -> LockChange | None:
        """Hand the seat over, or with None get up from it.

        Raises:
            SteeringError: `not_driving`: it is not theirs to give.
        """
        if self.driver != identity:
            raise SteeringError("not_driving", "only who drives can hand the seat over")
        self._active_s = now_s
        return self._set_driver(to)

    def left(self, identity: str) -> LockChange | None:
        """Free the seat when it was theirs: they have left the room."""
        if self.asking == identity:
            self.asking = None
        return self._set_driver(None) if self.driver == identity else None

    def _set_driver(self, identity: str | None) -> LockChange | None:
        before, self.driver = self.driver, identity
        if self.asking == identity:
            self.asking = None
        return LockChange(before, identity) if before != identity else None
