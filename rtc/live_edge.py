"""Playing no later than has to be, without ever outrunning who generates.

A pacer keeps the distance that it began with. Where pictures come at a rate of their own (a camera
is restyled), a distance that was never needed is only delay, and is taken off by playing a little
faster. Where they are made because the ones before were seen, it is the lead: played faster, they
would come faster, and the world would run too fast. Nobody says which it is, so it is tried: a
distance that has become shorter by what was taken off was delay; one that has not is left alone,
for longer after each try.
"""

WINDOW_US = 600_000
"""What the distance is judged by: the least of so long."""

MARGIN_US = 8_000
"""Kept, for what comes a little later than usual."""

MOST_US = 100_000
"""Taken off in one try."""

SPEED_UP = 0.1
"""How much faster that is played."""

REST_US = 30_000_000
LONGEST_REST_US = 300_000_000


class LiveEdge:
    """Says how much earlier than its pacer a peer plays. Pure: time comes in as an argument."""

    def __init__(self) -> None:
        self._rest_us = REST_US
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget what was taken off: the pacer has begun anew."""
        self._shift_us = self._target_us = 0
        self._before_us: int | None = None  # the least distance before the try that is judged
        self._tried_us = 0
        self._window_us: int | None = None  # when the window began
        self._resting_us = 0  # until when
        self._least_us = 0
        self._moved_us = 0  # when the shift last moved

    @property
    def shifted_us(self) -> int:
        """How much earlier it plays now."""
        return self._shift_us

    def shift_us(self, slack_us: int, now_us: int) -> int:
        """Return how much earlier to play what has just come.

        Args:
            slack_us: how long it would wait by the pacer alone.
            now_us: of the pacer's clock.
        """
        self._move(now_us)
        slack_us -= self._shift_us
        began_us = self._window_us
        if began_us is None:
            began_us = now_us
            self._open(slack_us, now_us)
        self._least_us = min(self._least_us, slack_us)
        if self._shift_us < self._target_us:
            self._open(slack_us, now_us)  # while it moves nothing can be judged
        elif now_us - began_us >= WINDOW_US:
            self._judge(now_us)
            self._open(slack_us, now_us)
        return self._shift_us

    def _open(self, slack_us: int, now_us: int) -> None:
        self._window_us, self._least_us = now_us, slack_us

    def _move(self, now_us: int) -> None:
        if self._shift_us < self._target_us:
            step_us = round((now_us - self._moved_us) * SPEED_UP)
            self._shift_us = min(self._target_us, self._shift_us + max(0, step_us))
        self._moved_us = now_us

    def _judge(self, now_us: int) -> None:
        if self._before_us is not None:
            taken_us, self._before_us = self._before_us - self._least_us, None
            if taken_us < self._tried_us // 2:
                self._resting_us = now_us + self._rest_us
                self._rest_us = min(2 * self._rest_us, LONGEST_REST_US)
                return
        if now_us >= self._resting_us and self._least_us > 2 * MARGIN_US:
            self._before_us = self._least_us
            self._tried_us = min(self._least_us - MARGIN_US, MOST_US)
            self._target_us = self._shift_us + self._tried_us
