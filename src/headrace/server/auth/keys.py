"""API keys: `hr_<id>_<secret>`, of which only a hash of the secret is stored.

The secret has 256 random bits, so a plain SHA-256 of it cannot be turned back or guessed. A revoked
key stays in the store: a server that once had keys never becomes open again.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Sequence
from datetime import datetime

import msgspec

from headrace.api_types.requests import FASTEST, Scope
from headrace.api_types.responses import KeyView, NewKey
from headrace.app import App
from headrace.errors import HeadraceError, InvalidInput, RecordConflict
from headrace.model.names import check_name, check_text

SCOPES: tuple[Scope, ...] = ("read", "write", "admin")
KIND = "key"
PAGE = 1_000
MOST_KEYS = 10_000
_FORM = re.compile(r"hr_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")

# A key that was revoked elsewhere is refused after this many seconds at the latest.
LONGEST_TRUST = 2.0
REFRESH_AFTER = 1.0
# An unknown key is looked up again after this many seconds: it may be new.
NEW_AFTER = 0.1


class KeyNotFound(HeadraceError):
    """No key has this id."""


class Key(msgspec.Struct, kw_only=True, frozen=True):
    """A stored key. `queues` empty means all; `rate` is requests a second."""

    id: str
    name: str
    scope: Scope
    hash: str
    created_at: datetime
    user: str | None = None
    queues: tuple[str, ...] = ()
    rate: float | None = None
    revoked_at: datetime | None = None

    def view(self) -> KeyView:
        """Return what people may see of it."""
        return msgspec.convert(self, KeyView, from_attributes=True)

    def new_view(self, secret: str) -> NewKey:
        """Return the same with the secret, for the one response that shows it."""
        return NewKey(**msgspec.structs.asdict(self.view()), secret=secret)


_decoder = msgspec.json.Decoder(Key)


async def create_key(
    app: App,
    *,
    name: str,
    scope: str = "read",
    user: str | None = None,
    queues: Sequence[str] = (),
    rate: float | None = None,
) -> tuple[Key, str]:
    """Make a key. The returned text is its only copy."""
    if scope not in SCOPES:
        raise InvalidInput(f"scope {scope!r} is unknown; use one of {', '.join(SCOPES)}")
    if rate is not None and not 0 < rate <= FASTEST:
        raise InvalidInput(f"rate must be more than 0 and at most {FASTEST:.0f}, got {rate!r}")
    secret = secrets.token_urlsafe(32)
    key = Key(
        id=secrets.token_hex(8),
        name=check_text("key name", name),
        scope=scope,
        hash=hashed(secret),
        created_at=app.clock.utcnow(),
        user=None if user is None else check_text("user", user),
        queues=tuple(dict.fromkeys(check_name("queue", queue) for queue in queues)),
        rate=rate,
    )
    await app.open()
    await app.engine.record_put(KIND, key.id, msgspec.json.encode(key), version=0)
    return key, f"hr_{key.id}_{secret}"


async def list_keys(app: App) -> list[Key]:
    """Return all keys, also revoked ones, the oldest first."""
    await app.open()
    keys: list[Key] = []
    after = ""
    while len(keys) < MOST_KEYS:
        records = await app.engine.record_list(KIND, after=after, limit=PAGE)
        keys += [_decoder.decode(record.body) for record in records]
        if len(records) < PAGE:
            break
        after = records[-1].key
    return sorted(keys, key=lambda key: (key.created_at, key.id))


async def revoke_key(app: App, key_id: str) -> Key:
    """Revoke a key. Revoking twice is fine."""
    await app.open()
    while True:
        record = (
            await app.engine.record_get(KIND, key_id)
            if re.fullmatch(r"[0-9a-f]{16}", key_id)
            else None
        )
        if record is None:
            raise KeyNotFound(f"no key has the id {key_id[:40]!r}; see: headrace keys list")
        key = _decoder.decode(record.body)
        if key.revoked_at is not None:
            return key
        key = msgspec.structs.replace(key, revoked_at=app.clock.utcnow())
        try:
            body = msgspec.json.encode(key)
            await app.engine.record_put(KIND, key_id, body, version=record.version)
        except RecordConflict:
            continue  # changed at the same moment: read it again
        return key


def hashed(secret: str) -> str:
    """Return the stored form of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


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
