"""What bitrate a line takes that tells nothing but whether it falls behind.

While it falls behind, the bitrate follows what it drains. While it does not, more is tried, in
steps; after a step that failed the next one waits longer.
"""

WINDOW_US = 400_000
BEHIND = 0.4
"""A line that is behind for this part of a window falls behind; the rest is an odd large frame."""

CLEAR = 0.1
SHARE = 0.85
"""Part of the drained rate that is used, so that the queue gets shorter."""

SETTLE_US = 800_000
"""After a change the line is watched for so long before the same rate is lowered further."""

USED = 0.5
"""A limit of which pictures use less is not raised: that would say nothing of the line."""

LEAST_BITS = 50_000
MOST_BITS = 8_000_000
"""A line that takes more is not limited."""

STEP = 1.3
FIRST_TRY_US = 1_500_000
LONGEST_TRY_US = 24_000_000


class BitrateSearch:
    """The bitrate for the pictures of one client. Pure: time is an argument.

    Attributes:
        bits_per_s: None: no limit.
    """

    def __init__(self) -> None:
        self.bits_per_s: int | None = None
        self._begun_us: int | None = None  # of the window
        self._noted_us = 0
        self._behind_us = 0
        self._was_behind = False
        self._wait_us = FIRST_TRY_US
        self._changed_us = 0
        self._raised = False  # by the last change
        self._picture_bytes = 0  # before the window

    def note(self, behind: bool, bits_per_s: float | None, picture_bytes: int, now_us: int) -> None:
        """Note how the line is now.

        Args:
            behind: whether it is behind.
            bits_per_s: what pictures may take of what it drains; None: not known.
            picture_bytes: of all pictures so far.
            now_us: the time.
        """
        if self._begun_us is None:
            self._begun_us = self._noted_us = self._changed_us = now_us
        if self._was_behind:
            self._behind_us += now_us - self._noted_us
        self._noted_us, self._was_behind = now_us, behind
        length_us = now_us - self._begun_us
        if length_us < WINDOW_US:
            return
        part = self._behind_us / length_us
        used = (picture_bytes - self._picture_bytes) * 8e6 / length_us
        self._begun_us, self._behind_us, self._picture_bytes = now_us, 0, picture_bytes
        if part >= BEHIND and bits_per_s is not None:
            self._lower(bits_per_s, now_us)
        elif part > CLEAR:
            self._changed_us = max(self._changed_us, now_us - self._wait_us // 2)
        elif now_us - self._changed_us >= self._wait_us:
            self._raise(used, now_us)

    def _lower(self, drained: float, now_us: int) -> None:
        wanted = max(LEAST_BITS, round(drained * SHARE))
        if self.bits_per_s is not None and wanted >= self.bits_per_s:
            if now_us - self._changed_us < SETTLE_US:
                return  # what was written before the last change may still be on its way
            wanted = max(LEAST_BITS, round(self.bits_per_s * SHARE))
        if self._raised:
            self._wait_us = min(2 * self._wait_us, LONGEST_TRY_US)
        self.bits_per_s, self._changed_us, self._raised = wanted, now_us, False

    def _raise(self, used: float, now_us: int) -> None:
        if self.bits_per_s is None or used < USED * self.bits_per_s:
            return
        if self._raised:  # and the one before has held
            self._wait_us = FIRST_TRY_US
        self.bits_per_s = round(self.bits_per_s * STEP)
        self._changed_us, self._raised = now_us, True
        if self.bits_per_s > MOST_BITS:
            self.bits_per_s = None
