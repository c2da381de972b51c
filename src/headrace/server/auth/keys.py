"""The API keys that a server accepts, read now and then, and how often each may ask."""

from __future__ import annotations

import asyncio
import hmac
import math
import re
import time

from headrace.admin.keys import Key, hashed, list_keys
from headrace.app import App
from headrace.server.http.problems import Refused, invalid

_FORM = re.compile(r"hr_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")

# A key that was revoked elsewhere is refused after this many seconds at the latest.
LONGEST_TRUST = 2.0
REFRESH_AFTER = 1.0
# An unknown key is looked up again after this many seconds: it may be new.
NEW_AFTER = 0.1


class Keyring:
    """The keys of a store, read at most once a second, however many requests come."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._keys: dict[str, Key] = {}
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        # Incremented by `forget`: a read that began before is out of date.
        self._changes = 0

    async def exist(self) -> bool:
        """Return whether there are keys, including revoked ones."""
        await self._refresh()
        return bool(self._keys)

    async def find(self, presented: str) -> Key | None:
        """Return the key of a request, if it is valid and not revoked."""
        await self._refresh()
        form = _FORM.fullmatch(presented)
        if form is None:
            return None
        if (key := self._match(form[1], form[2])) is None:
            # It may have been made just now. Guesses have to wait, whatever is wrong with them: a
            # wrong secret takes as long as an unknown id.
            await asyncio.sleep(max(self._read_at + NEW_AFTER - time.monotonic(), 0))
            await self._refresh(at_most=NEW_AFTER)
            key = self._match(form[1], form[2])
        return key

    def _match(self, key_id: str, secret: str) -> Key | None:
        key = self._keys.get(key_id)
        # Compared also when there is none, so that timing reveals nothing about ids.
        right = hmac.compare_digest(hashed(secret), key.hash if key else hashed(""))
        return key if key is not None and right and key.revoked_at is None else None

    async def any(self, key_id: str) -> Key | None:
        """Return a key, also one that is revoked."""
        await self._refresh()
        return self._keys.get(key_id)

    async def by_id(self, key_id: str, *, at_most: float = LONGEST_TRUST) -> Key | None:
        """Return a key that was accepted before, if it is not revoked."""
        await self._refresh(at_most=at_most)
        key = self._keys.get(key_id)
        return key if key is not None and key.revoked_at is None else None

    async def valid(self, key_id: str, *, at_most: float = LONGEST_TRUST) -> bool:
        """Return whether a key that was accepted before still is, as of so many seconds ago."""
        return await self.by_id(key_id, at_most=at_most) is not None

    def forget(self) -> None:
        """Read the keys again before the next request is answered."""
        self._read_at = float("-inf")
        self._reading = None
        self._changes += 1

    async def _refresh(self, at_most: float = LONGEST_TRUST) -> None:
        """Read the keys again if they are older than that."""
        while True:
            age = time.monotonic() - self._read_at
            if age < min(REFRESH_AFTER, at_most):
                return
            changes, reading = self._changes, self._reading
            if reading is None or reading.done():
                reading = self._reading = asyncio.create_task(self._read(), name="headrace keys")
                reading.add_done_callback(_seen)
            if age < at_most:
                return
            await asyncio.shield(reading)
            if changes == self._changes:
                return

    async def _read(self) -> None:
        began, changes = time.monotonic(), self._changes
        keys = {key.id: key for key in await list_keys(self._app)}
        if changes == self._changes:
            self._keys, self._read_at = keys, began


def _seen(reading: asyncio.Task[None]) -> None:
    """Mark the error as retrieved: waiters got it, and the next request tries again."""
    if not reading.cancelled():
        reading.exception()


class TokenBucket:
    """`rate` requests a second, and twice as many at once."""

    __slots__ = ("_level", "_most", "_then", "rate")

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._most = max(2 * rate, 1.0)
        self._level = self._most
        self._then = time.monotonic()

    @property
    def most(self) -> int:
        """How many there are at once at the most."""
        return int(self._most)

    def take(self, number: int = 1) -> float:
        """Take tokens: return 0 if there were so many, else the seconds until there are."""
        now = time.monotonic()
        self._level = min(self._most, self._level + (now - self._then) * self.rate)
        self._then = now
        if self._level >= number:
            self._level -= number
            return 0.0
        return (number - self._level) / self.rate


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
            raise _too_many("requests", wait)

    def check_batch(self, key_id: str | None, jobs: int) -> None:
        """Refuse a batch of more jobs than its key may send. Its request was counted as one."""
        bucket = None if key_id is None else self._buckets.get(key_id)
        if bucket is None:
            return  # there are no keys, so nobody is held to a rate
        if jobs > bucket.most:
            raise invalid(
                f"the batch has {jobs} jobs, but this key may send {bucket.rate:g} a second, and "
                f"{bucket.most} at once; send at most {bucket.most} in a batch",
                field="jobs",
            )
        if jobs > 1 and (wait := bucket.take(jobs - 1)):
            raise _too_many("jobs", wait)


def _too_many(what: str, wait: float) -> Refused:
    return Refused(
        429,
        "too-many-requests",
        f"this key has sent more {what} than it may",
        remedy=f"try again in {wait:.3f} s",
        headers={"Retry-After": str(math.ceil(wait))},
    )
