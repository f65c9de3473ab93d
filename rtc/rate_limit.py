"""Rate limits: token buckets, one for each address."""

from collections import OrderedDict

MOST_BUCKETS = 10_000
"""Addresses that are remembered; the one that has been idle for longest is forgotten first."""

MINUTE_S = 60.0


class TokenBucket:
    """Allows `burst` at once and `rate_per_s` in the long run; time comes in as an argument."""

    def __init__(self, rate_per_s: float, burst: int, now_s: float) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._tokens = float(burst)
        self._filled_s = now_s

    def wait_s(self, now_s: float, *, take: bool = True) -> float:
        """Take a token and return 0, or return how long until there is one.

        Args:
            take: False takes none, and only looks.
        """
        elapsed_s = max(0.0, now_s - self._filled_s)
        self._tokens = min(float(self._burst), self._tokens + elapsed_s * self._rate_per_s)
        self._filled_s = now_s
        if self._tokens < 1:
            return (1 - self._tokens) / self._rate_per_s
        self._tokens -= take
        return 0.0


class Rates:
    """A bucket for each address, whose burst is half of what a minute allows.

    Args:
        per_min: None allows everything.
    """

    def __init__(self, per_min: int | None) -> None:
        self.per_min = per_min
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def wait_s(self, address: str, now_s: float, *, take: bool = True) -> float:
        """Take a token of an address and return 0, or return how long until there is one.

        Args:
            take: False takes none, and only looks.
        """
        if self.per_min is None:
            return 0.0
        bucket = self._buckets.get(address)
        if bucket is None:
            if not take:
                return 0.0
            burst = max(1, self.per_min // 2)
            bucket = self._buckets[address] = TokenBucket(self.per_min / MINUTE_S, burst, now_s)
            if len(self._buckets) > MOST_BUCKETS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(address)
        return bucket.wait_s(now_s, take=take)
