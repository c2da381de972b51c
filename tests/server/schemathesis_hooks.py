"""What Schemathesis sends where the document names a format that it does not know."""

from __future__ import annotations

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
