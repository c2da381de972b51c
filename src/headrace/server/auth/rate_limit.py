"""How often each key may ask."""

from __future__ import annotations

import math
import time

from headrace.admin.keys import Key
from headrace.server.http.problems import Refused


class TokenBucket:
    """`rate` requests a second, and twice as many at once."""

    __slots__ = ("_level", "_most", "_then", "rate")

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._most = max(2 * rate, 1.0)
        self._level = self._most
        self._then = time.monotonic()

    def take(self) -> float:
        """Take one token: return 0 if there was one, else the seconds until there is."""
        now = time.monotonic()
        self._level = min(self._most, self._level + (now - self._then) * self.rate)
        self._then = now
        if self._level >= 1:
            self._level -= 1
            return 0.0
        return (1 - self._level) / self.rate


class RateLimit:
    """A bucket for each key. `rate` is for keys that have none of their own."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._buckets: dict[str, TokenBucket] = {}

    def check(self, key: Key) -> None:
        """Refuse a key that has sent more requests than it may."""
        rate = key.rate or self._rate
        bucket = self._buckets.get(key.id)
        if bucket is None or bucket.rate != rate:
            bucket = self._buckets[key.id] = TokenBucket(rate)
        if wait := bucket.take():
            raise Refused(
                429,
                "too-many-requests",
                "this key has sent more requests than it may",
                remedy=f"try again in {wait:.3f} s",
                headers={"Retry-After": str(math.ceil(wait))},
            )
