"""Reads the statements in queries/ and migrations/: one file per operation."""

from __future__ import annotations

import sqlite3
from importlib import resources

_FOLDER = resources.files("headrace.engine.sqlite")


def query(name: str) -> str:
    """The statement in queries/<name>.sql."""
    return _FOLDER.joinpath("queries", f"{name}.sql").read_text(encoding="utf-8")


def migrations() -> list[tuple[int, list[str]]]:
    """Every migration by its number, as single statements."""
    files = sorted(
        (path for path in _FOLDER.joinpath("migrations").iterdir() if path.name.endswith(".sql")),
        key=lambda path: path.name,
    )
    return [(int(path.name[:4]), _statements(path.read_text(encoding="utf-8"))) for path in files]


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
