"""Names that a bundle may have."""

from __future__ import annotations

import re

from headrace.errors import InvalidName

_FORM = re.compile(r"[a-z][a-z0-9_-]{0,39}")

# First parts of Headrace's own routes, its commands, and words that its settings begin with. A
# test compares this with the real ones.
RESERVED = frozenset(
    (
        # routes
        *("api", "artifacts", "audit", "dead-letters", "dispatchers", "docs", "event-types"),
        *("events", "healthz", "jobs", "keys", "lanes", "metrics", "openapi", "queues", "readyz"),
        *("destinations", "running", "schedules", "stats", "tasks", "ui", "workers", "workflows"),
        *("alert-rules", "alerts", "breakers", "bulk", "errors", "rates", "summary"),
        # commands
        *(
            "bench",
            "bundles",
            "completion",
            "dispatcher",
            "doctor",
            "enqueue",
            "migrate",
            "prune",
            "server",
        ),
        *("series", "status", "top", "up", "version", "worker"),
        # settings
        *("allow", "app", "block", "connection", "grace", "history", "host", "lease", "max"),
        *(
            "encrypt",
            "encryption",
            "log",
            "payload",
            "port",
            "probes",
            "show",
            "stores",
            "test",
            "tracing",
            "url",
        ),
    )
)


def check_bundle_name(name: object) -> str:
    """Return the name if a bundle may have it."""
    if not isinstance(name, str) or not _FORM.fullmatch(name):
        raise InvalidName(
            f"a bundle cannot be called {name!r}; use at most 40 of a-z, 0-9, _ and -, with a "
            "letter first"
        )
    if name in RESERVED:
        raise InvalidName(
            f'a bundle cannot be called "{name}", because Headrace has a route, a command or '
            "settings of that name; choose another"
        )
    return name
