"""Who makes jobs by the clock or of messages, as they tell of themselves in records."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from headrace.engine.base import Records

KIND = "dispatcher"
MOST = 1_000
# They tell every few seconds. One that has not been heard of for so long is probably gone.
SILENT = timedelta(seconds=30)


async def dispatchers(engine: Records, now: datetime, *, limit: int = MOST) -> list[dict[str, Any]]:
    """All that have not taken leave, by name, with what they said last."""
    found = []
    for record in await engine.record_list(KIND, limit=limit):
        try:
            said = msgspec.json.decode(record.body, type=dict[str, Any])
        except msgspec.DecodeError:
            continue  # of another version
        seen = {
            "name": record.key,
            "type": said.pop("type", "queue"),
            "adapter": said.pop("adapter", "?"),
            "seen_at": record.updated_at,
            "silent": now - record.updated_at > SILENT,
        }
        found.append(seen | said)
    return found
