"""Lines of the audit log about breakers that workers open and close."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from headrace.engine.base import Records
from headrace.model.ids import new_id
from headrace.model.times import moment_of

# As the server stores changes; a test compares them.
KIND, CHANGE = "audit", "change-"


async def note(
    engine: Records,
    action: Literal["breaker.open", "breaker.close"],
    target: str,
    *,
    who: str,
    now: float,
    **detail: Any,
) -> None:
    """Write that a breaker was opened or closed."""
    # Workers whose breakers stay closed need nothing of the HTTP API.
    from headrace.api_types.responses import AuditEntry  # noqa: PLC0415

    entry = AuditEntry(at=moment_of(now), action=action, target=target, who=who, detail=detail)
    await engine.record_put(KIND, CHANGE + new_id(), msgspec.json.encode([entry]), version=0)
