"""What Schemathesis sends where the document names a format that it does not know."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import schemathesis
from hypothesis import strategies as st

MINUTES = st.sampled_from(["*", "*/5", "0", "59", "1,2,3", "9-17"])
HOURS = st.sampled_from(["*", "*/2", "0", "23", "8,20"])
DAYS = st.sampled_from(["*", "1", "28", "1-15"])
MONTHS = st.sampled_from(["*", "*/3", "1", "12"])
WEEKDAYS = st.sampled_from(["*", "0", "MON-FRI", "SUN"])

schemathesis.openapi.format("cron", st.tuples(MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS).map(" ".join))
schemathesis.openapi.format(
    "time-zone", st.sampled_from(["Asia/Seoul", "Europe/Berlin", "America/St_Johns", "UTC"])
)
schemathesis.openapi.format(
    "rate", st.sampled_from(["100/s", "10/m", "1/5s", "0.5/h", "1000000/d", "3/90m"])
)


MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


@schemathesis.hook
def before_call(
    context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]
) -> None:
    """A pause or a hold ends in the future, which a schema cannot say. What is no moment is left
    alone.
    """
    body = case.body
    if case.path.endswith(("/pause", "/hold")) and isinstance(body, dict):
        until = body.get("until")
        if isinstance(until, str) and MOMENT.fullmatch(until):
            body["until"] = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
