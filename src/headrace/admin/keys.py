"""API keys: `hr_<id>_<secret>`, of which only a hash of the secret is kept.

The secret has 256 random bits, so a plain SHA-256 of it cannot be turned back or guessed. A revoked
key stays in the store: a server that once had keys never becomes open again.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from datetime import datetime

import msgspec

from headrace.api_types.requests import FASTEST, Scope
from headrace.api_types.responses import KeyView, NewKey
from headrace.app_lifecycle import AppLifecycle
from headrace.engine.bounded_reads import records_of
from headrace.engine.record_changes import change_record
from headrace.errors import HeadraceError, InvalidInput
from headrace.model.names import check_name, check_text
from headrace.model.views import Record

SCOPES: tuple[Scope, ...] = ("read", "write", "admin")
KIND = "key"
PAGE = 1_000
MOST_KEYS = 10_000


class KeyNotFound(HeadraceError):
    """No key has this id."""


class Key(msgspec.Struct, kw_only=True, frozen=True):
    """A key as it is kept. `queues` empty means all; `rate` is requests a second."""

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
        """Return the same with the secret, for whoever has just made the key."""
        return NewKey(**msgspec.structs.asdict(self.view()), secret=secret)


_decoder = msgspec.json.Decoder(Key)


async def create_key(
    app: AppLifecycle,
    *,
    name: str,
    scope: str = "read",
    user: str | None = None,
    queues: Sequence[str] = (),
    rate: float | None = None,
) -> tuple[Key, str]:
    """Make a key. The text in the answer is the only copy of it that there will ever be."""
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


async def list_keys(app: AppLifecycle) -> list[Key]:
    """All keys, also revoked ones, the oldest first."""
    await app.open()
    records = await records_of(app.engine, KIND, page=PAGE, most=MOST_KEYS)
    keys = [_decoder.decode(record.body) for record in records]
    return sorted(keys, key=lambda key: (key.created_at, key.id))


async def revoke_key(app: AppLifecycle, key_id: str) -> Key:
    """Let a key be refused from now on. Revoking twice is fine."""
    unknown = KeyNotFound(f"no key has the id {key_id[:40]!r}; see: headrace keys list")
    await app.open()
    if not re.fullmatch(r"[0-9a-f]{16}", key_id):
        raise unknown

    def revoked(record: Record | None) -> tuple[Key, bytes | None]:
        if record is None:
            raise unknown
        key = _decoder.decode(record.body)
        if key.revoked_at is not None:
            return key, None
        key = msgspec.structs.replace(key, revoked_at=app.clock.utcnow())
        return key, msgspec.json.encode(key)

    busy = f"key {key_id} is being changed by others; try again"
    return await change_record(app.engine, KIND, key_id, revoked, busy=busy)


def hashed(secret: str) -> str:
    """Return what is stored of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
