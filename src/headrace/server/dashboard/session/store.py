"""Sessions of the dashboard. The store keeps only a hash of what the browser has."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from datetime import datetime, timedelta

import msgspec

from headrace.app import App
from headrace.errors import RecordConflict

KIND = "session"
LONGEST = timedelta(hours=12)
LONGEST_IDLE = timedelta(hours=1)
# How often it is written down that a session is in use.
TOUCH_EVERY = timedelta(minutes=1)
# A session that was ended on another server is refused after this many seconds at the latest.
LONGEST_TRUST = timedelta(seconds=1)
MOST_TRUSTED = 10_000
PAGE = 1_000


class DashboardSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it is kept, under the hash of its id."""

    key_id: str
    expires_at: datetime
    seen_at: datetime

    def over(self, now: datetime) -> bool:
        """Return whether it has ended by itself."""
        return now >= self.expires_at or now >= self.seen_at + LONGEST_IDLE


_decoder = msgspec.json.Decoder(DashboardSession)


class Sessions:
    """Begins, finds and ends sessions."""

    def __init__(self, app: App) -> None:
        self._app = app
        # What was read, and when: a page with its stream asks many times a second.
        self._reading: dict[str, asyncio.Future[DashboardSession | None]] = {}
        self._trusted: dict[str, tuple[DashboardSession, datetime]] = {}

    async def begin(self, key_id: str) -> str:
        """Begin a session for a key; return its id, which only the browser keeps."""
        await self._tidy()
        session_id, now = secrets.token_urlsafe(32), self._app.clock.utcnow()
        session = DashboardSession(key_id=key_id, expires_at=now + LONGEST, seen_at=now)
        await self._app.engine.record_put(KIND, _hash(session_id), msgspec.json.encode(session))
        return session_id

    async def find(self, session_id: str) -> DashboardSession | None:
        """Return a session that has not ended, and note that it is in use."""
        key, now = _hash(session_id), self._app.clock.utcnow()
        session, read_at = self._trusted.get(key, (None, now))
        if session is None or abs(now - read_at) > LONGEST_TRUST:
            # All who ask at the same time wait for one answer.
            reading = self._reading.get(key)
            if reading is None:
                reading = self._reading[key] = asyncio.ensure_future(self._read(key, now))
                reading.add_done_callback(lambda _: self._reading.pop(key, None))
            session = await asyncio.shield(reading)
        if session is None or session.over(now):
            self._trusted.pop(key, None)
            return None
        return session

    async def end(self, session_id: str) -> None:
        """End a session."""
        key = _hash(session_id)
        await self._app.open()
        await self._app.engine.record_delete(KIND, key)
        # A read that began before must not bring it back.
        if reading := self._reading.get(key):
            await asyncio.wait([reading])
        self._trusted.pop(key, None)

    async def _read(self, key: str, now: datetime) -> DashboardSession | None:
        await self._app.open()
        record = await self._app.engine.record_get(KIND, key)
        if record is None:
            self._trusted.pop(key, None)
            return None
        session = _decoder.decode(record.body)
        if not session.over(now) and now >= session.seen_at + TOUCH_EVERY:
            session = msgspec.structs.replace(session, seen_at=now)
            body = msgspec.json.encode(session)
            try:
                await self._app.engine.record_put(KIND, key, body, version=record.version)
            except RecordConflict:
                # Another server noted it, or it was ended: then it has to be read again.
                return await self._read(key, now)
        if len(self._trusted) >= MOST_TRUSTED:
            self._trusted.clear()
        self._trusted[key] = (session, now)
        return session

    async def _tidy(self) -> None:
        """Delete sessions that have ended by themselves."""
        await self._app.open()
        engine, now = self._app.engine, self._app.clock.utcnow()
        after = ""
        while records := await engine.record_list(KIND, after=after, limit=PAGE):
            for record in records:
                if _decoder.decode(record.body).over(now):
                    await engine.record_delete(KIND, record.key)
            after = records[-1].key
            if len(records) < PAGE:
                return


def _hash(session_id: str) -> str:
    return hashlib.sha256(session_id.encode()).hexdigest()
