"""The statements and migrations of this engine."""

from __future__ import annotations

import sqlite3

from headrace.engine import sql_files

_PACKAGE = "headrace.engine.sqlite"

sql = sql_files.Statements(sql_files.queries(_PACKAGE))


def query(name: str) -> str:
    """Return a statement of queries/."""
    return sql_files.queries(_PACKAGE)[name]


def migrations() -> list[sql_files.Migration]:
    """Return the changes of the schema, by their number."""
    return sql_files.migrations(_PACKAGE)


def statements(script: str) -> list[str]:
    """Return the single statements of a script."""
    # Not `executescript`: it commits first, and a migration has to be one transaction.
    found: list[str] = []
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return found
