"""The statements and migrations of this engine."""

from __future__ import annotations

from headrace.engine import sql_files

_PACKAGE = "headrace.engine.postgres"


def query(name: str) -> str:
    """Return a statement of queries/."""
    return sql_files.queries(_PACKAGE)[name]


def migrations() -> list[tuple[int, str]]:
    """Return every migration by its number."""
    return [(each.number, each.text) for each in sql_files.migrations(_PACKAGE)]
