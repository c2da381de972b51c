"""Cron and event dispatchers, from the reports that they write as records."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from headrace.engine.base import Records

KIND = "dispatcher"
MOST = 1_000
# They report every few seconds. One without a report for so long is probably gone.
SILENT = timedelta(seconds=30)


async def dispatchers(engine: Records, now: datetime, *, limit: int = MOST) -> list[dict[str, Any]]:
    """Return all that have not been stopped, by name, with their last report."""
    found = []
    for record in await engine.record_list(KIND, limit=limit):
        try:
            report = msgspec.json.decode(record.body, type=dict[str, Any])
        except msgspec.DecodeError:
            continue  # of another version
        seen = {
            "name": record.key,
            "type": report.pop("type", "queue"),
            "adapter": report.pop("adapter", "?"),
            "seen_at": record.updated_at,
            "silent": now - record.updated_at > SILENT,
        }
        found.append(seen | report)
    return found
