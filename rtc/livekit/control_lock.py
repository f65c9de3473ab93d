"""The control lock: one participant at a time drives, until a hand-over, a departure or idleness.

Pure: time is an argument, and the caller acts on a change (releases keys, tells the room). The
first participant who steers takes a free lock, so that a room of one needs no extra step.
"""

from dataclasses import dataclass

from reverie.rtc.livekit.errors import InputRefusedError


@dataclass(frozen=True, slots=True)
class LockChange:
    """The driver has changed; None means no driver."""

    before: str | None
    now: str | None


class ControlLock:
    """The control lock of a world.

    Attributes:
        driver: the identity of the driver; None: the lock is free.
        asking: the participant who asked last while it was taken; the driver may hand over to them.
    """

    def __init__(self, idle_s: float) -> None:
        """Begin free; a driver idle for `idle_s` loses the lock to a participant who asks."""
        self.driver: str | None = None
        self.asking: str | None = None
        self._idle_s = idle_s
        self._active_s = 0.0

    def check(self, identity: str) -> None:
        """Check that a participant may steer.

        Raises:
            InputRefusedError: `seat_taken`: another participant drives.
        """
        if self.driver not in (None, identity):
            message = f"{self.driver!r} drives; ask with world.drive"
            raise InputRefusedError("seat_taken", message)

    def steer(self, identity: str, now_s: float) -> LockChange | None:
        """Record that a participant steers; they take a free lock.

        Raises:
            InputRefusedError: `seat_taken`: another participant drives.
        """
        self.check(identity)
        self._active_s = now_s
        return self._set_driver(identity)

    def take(self, identity: str, now_s: float) -> LockChange | None:
        """Take the lock if it is free, or if its driver is idle.

        Raises:
            InputRefusedError: `seat_taken`: another participant drives; `asking` names the caller.
        """
        idle_s = now_s - self._active_s
        if self.driver in (None, identity) or idle_s >= self._idle_s:
            self._active_s = now_s
            return self._set_driver(identity)
        self.asking = identity
        left_s = max(self._idle_s - idle_s, 0.0)
        message = f"{self.driver!r} drives, and loses control when idle for {self._idle_s:g} s"
        raise InputRefusedError("seat_taken", message, retry_after_s=round(left_s, 1))

    def hand(self, identity: str, to: str | None, now_s: float) -> LockChange | None:
        """Hand the lock over, or release it with None.

        Raises:
            InputRefusedError: `not_driving`: they do not drive.
        """
        if self.driver != identity:
            raise InputRefusedError(
                "not_driving", "only the driver can hand over or release control"
            )
        self._active_s = now_s
        return self._set_driver(to)

    def left(self, identity: str) -> LockChange | None:
        """Free the lock if the participant who left was the driver."""
        if self.asking == identity:
            self.asking = None
        return self._set_driver(None) if self.driver == identity else None

    def _set_driver(self, identity: str | None) -> LockChange | None:
        before, self.driver = self.driver, identity
        if self.asking == identity:
            self.asking = None
        return LockChange(before, identity) if before != identity else None
