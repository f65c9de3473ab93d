"""How many units run at once, where memory may not be enough for as many as an operator allows."""

import logging

log = logging.getLogger(__name__)

GROWS_AFTER = 256
"""Full batches in a row that have room before a larger one is tried again."""


class BatchLimit:
    """Shrinks when memory runs out, and grows again once it has sufficed for a while.

    Attributes:
        size: units that may run at once now.
    """

    def __init__(self, most: int) -> None:
        assert most > 0, "a batch has at least one unit"
        self.size = most
        self._most = most
        self._in_a_row = 0

    def ran(self, size: int) -> None:
        """Note that so many units had room."""
        if size < self.size or self.size == self._most:
            return
        self._in_a_row += 1
        if self._in_a_row >= GROWS_AFTER:
            self.size, self._in_a_row = min(self._most, 2 * self.size), 0

    def ran_out(self, size: int) -> None:
        """Note that so many units had no room."""
        smaller = max(1, size // 2)
        self._in_a_row = 0
        if smaller < self.size:
            log.warning("memory ran out for %d units at once; %d are run now", size, smaller)
            self.size = smaller
