"""Exponential backoff: pauses between attempts, each twice as long as the one before. Pure."""


class Backoff:
    """The pauses of one series of attempts.

    Args:
        first_s: the first pause.
        longest_s: no pause is longer.
    """

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self.pause_s = first_s

    def take(self) -> float:
        """Return the pause that is due now; the next one is longer."""
        pause_s = self.pause_s
        self.pause_s = min(2 * pause_s, self._longest_s)
        return pause_s

    def restart(self) -> None:
        """Begin with the first pause again, because an attempt has succeeded."""
        self.pause_s = self._first_s
