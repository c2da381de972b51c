"""Reading the audit log backwards, a bounded part of it at a time.

Records are listed by key in one direction only. Keys begin with the time at which they were
written, so spans of time are read, the latest first: long ones where little was written.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import datetime

import msgspec

from headrace.api_types.responses import AuditEntry, AuditPage
from headrace.engine.base import Records
from headrace.model.ids import first_id
from headrace.model.views import Record

KIND = "audit"
# Two kinds of records, so that many enqueues cannot push out the changes.
CHANGE, ENQUEUE = "change-", "enqueue-"
PAGE = 500
# So many records of each kind are read for one page. If they hold too few entries that match, the
# page is short, and its cursor says where to go on.
MOST_READ = 2_000
FIRST_SPAN = 3_600.0
SHORTEST_SPAN = 0.002
# Clocks of servers differ; an entry is written some time after its change.
SKEW = 60.0
WRITTEN_WITHIN = 3_600.0

Place = tuple[str, int]

_decoder = msgspec.json.Decoder(list[AuditEntry])


class AuditFilter(msgspec.Struct, kw_only=True, frozen=True):
    """Which entries. An action is one ("queue.pause") or all of a noun ("queue"); a target also
    finds the enqueues whose first ids it is among.
    """

    who: str | None = None
    action: str | None = None
    target: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def matches(self, entry: AuditEntry) -> bool:
        """Whether an entry is asked for."""
        action, target = self.action, self.target
        return (
            (self.who is None or self.who in (entry.who, entry.key_id, entry.user))
            and (action is None or entry.action == action or entry.action.startswith(f"{action}."))
            and (
                target is None
                or entry.target == target
                or target in entry.detail.get("first_ids", ())
            )
            and (self.since is None or entry.at >= self.since)
            and (self.until is None or entry.at < self.until)
        )


async def read_page(
    engine: Records, wanted: AuditFilter, *, before: Place | None, limit: int
) -> AuditPage:
    """Return entries that match, the newest first."""
    lines = [Backwards(engine, prefix, wanted, before) for prefix in (CHANGE, ENQUEUE)]
    entries: list[AuditEntry] = []
    while True:
        for line in lines:
            await line.fill()
        open_lines = [line for line in lines if line.rest]
        if not open_lines:
            return AuditPage(entries, None)
        line = max(open_lines, key=lambda each: each.rest[-1][0])
        place, entry = line.rest[-1]
        if entry is None:
            # What is older in the other line could come before what was not read here.
            return AuditPage(entries, _cursor(place))
        if len(entries) == limit:
            return AuditPage(entries, entries[-1].id)
        line.rest.pop()
        entry.id = _cursor(place)
        entries.append(entry)


class Backwards:
    """One kind of records. `rest` are entries that match, the newest at the end; None stands for
    all that was not read.
    """

    def __init__(
        self, engine: Records, prefix: str, wanted: AuditFilter, before: Place | None
    ) -> None:
        self.rest: list[tuple[Place, AuditEntry | None]] = []
        self._before = before
        self._wanted = wanted
        self._records = self._read(engine, prefix)
        self._left = MOST_READ

    async def fill(self) -> None:
        """Read on, if nothing is left of what was read."""
        while not self.rest and (some := await anext(self._records, None)) is not None:
            self.rest = some[::-1]

    async def _read(
        self, engine: Records, prefix: str
    ) -> AsyncIterator[list[tuple[Place, AuditEntry | None]]]:
        oldest = await engine.record_list(KIND, after=prefix, limit=1)
        if not oldest or not oldest[0].key.startswith(prefix):
            return
        first = oldest[0].key.removeprefix(prefix)
        end, span = self._end(), FIRST_SPAN
        while first < end:
            start = first_id(_seconds(end) - span)
            ours = await _between(engine, prefix + start, prefix + end)
            if len(ours) >= PAGE and span > SHORTEST_SPAN:
                span /= 8
                continue
            # More in two milliseconds than are read at once.
            while ours and len(ours) % PAGE == 0:
                if not (more := await _between(engine, ours[-1].key, prefix + end)):
                    break
                ours += more
            self._left -= len(ours)
            yield [
                pair
                for record in reversed(ours)
                for pair in self._entries(record.key.removeprefix(prefix), record.body)
            ]
            end = start
            since = self._wanted.since
            if since is not None and _seconds(end) < since.timestamp() - SKEW:
                return
            if self._left <= 0 and first < end:
                yield [((end, 0), None)]
                return
            if len(ours) <= PAGE // 8:
                span *= 8

    def _end(self) -> str:
        now = time.time() + SKEW
        if self._wanted.until is not None:
            now = min(now, self._wanted.until.timestamp() + WRITTEN_WITHIN)
        # The record of the cursor itself may have earlier entries.
        end = first_id(now)
        return end if self._before is None else min(end, f"{self._before[0]}~")

    def _entries(self, key: str, body: bytes) -> list[tuple[Place, AuditEntry | None]]:
        found: list[tuple[Place, AuditEntry | None]] = []
        for index, entry in enumerate(_decoder.decode(body)):
            place = (key, index)
            if (self._before is None or place < self._before) and self._wanted.matches(entry):
                found.append((place, entry))
        return found[::-1]


async def _between(engine: Records, after: str, before: str) -> list[Record]:
    records = await engine.record_list(KIND, after=after, limit=PAGE)
    return [record for record in records if record.key < before]


def _seconds(key: str) -> float:
    """The time in the key of a record."""
    return int(key[:8] + key[9:13], 16) / 1_000


def _cursor(place: Place) -> str:
    return f"{place[0]}:{place[1]}"
