"""The API keys that a server accepts, read from the store now and then."""

from __future__ import annotations

import asyncio
import hmac
import re
import time

from headrace.admin.keys import Key, hashed, list_keys
from headrace.app import App

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
        if form[1] not in self._keys:
            # It may have been made just now. Guesses have to wait.
            await asyncio.sleep(max(self._read_at + NEW_AFTER - time.monotonic(), 0))
            await self._refresh(at_most=NEW_AFTER)
        key = self._keys.get(form[1])
        # Compared also when there is none, so that timing reveals nothing about ids.
        right = hmac.compare_digest(hashed(form[2]), key.hash if key else hashed(""))
        return key if key is not None and right and key.revoked_at is None else None

    async def valid(self, key_id: str) -> bool:
        """Return whether a key that was accepted before still is."""
        await self._refresh()
        key = self._keys.get(key_id)
        return key is not None and key.revoked_at is None

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
