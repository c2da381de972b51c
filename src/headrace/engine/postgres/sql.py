"""Reads the statements in queries/ and migrations/: one file per operation."""

from __future__ import annotations

from importlib import resources

_FOLDER = resources.files("headrace.engine.postgres")


def query(name: str) -> str:
    """The statement in queries/<name>.sql."""
    return _FOLDER.joinpath("queries", f"{name}.sql").read_text(encoding="utf-8")


def migrations() -> list[tuple[int, str]]:
    """Every migration by its number."""
    files = sorted(
        (path for path in _FOLDER.joinpath("migrations").iterdir() if path.name.endswith(".sql")),
        key=lambda path: path.name,
    )
    return [(int(path.name[:4]), path.read_text(encoding="utf-8")) for path in files]
