"""The statements and migrations of this engine."""

from __future__ import annotations

import sqlite3

from headrace.engine import sql_files

_PACKAGE = "headrace.engine.sqlite"


def query(name: str) -> str:
    """Return a statement of queries/."""
    return sql_files.queries(_PACKAGE)[name]


def migrations() -> list[tuple[int, list[str]]]:
    """Return every migration by its number, as single statements."""
    return [(each.number, _statements(each.text)) for each in sql_files.migrations(_PACKAGE)]


def _statements(script: str) -> list[str]:
    # Not `executescript`: it commits first, and a migration has to be one transaction.
    statements: list[str] = []
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements
