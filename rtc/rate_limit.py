"""How many commands a client may send: a bucket of tokens that fills with time."""


class TokenBucket:
    """Allows `burst` at once and `rate_per_s` in the long run; time comes in as an argument."""

    def __init__(self, rate_per_s: float, burst: int, now_s: float) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._tokens = float(burst)
        self._filled_s = now_s

    def wait_s(self, now_s: float) -> float:
        """Take a token and return 0; or, when there is none, return how long until there is."""
        elapsed_s = max(0.0, now_s - self._filled_s)
        self._tokens = min(float(self._burst), self._tokens + elapsed_s * self._rate_per_s)
        self._filled_s = now_s
        if self._tokens < 1:
            return (1 - self._tokens) / self._rate_per_s
        self._tokens -= 1
        return 0.0
