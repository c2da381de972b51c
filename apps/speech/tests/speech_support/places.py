"""Where the tests put jobs, rows and files: SQLite alone; all in PostgreSQL, files in a real S3
server; jobs in Redis, rows in PostgreSQL and files in that S3 server. The code under test is the
same.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.objects import objects_in
from tests.support.stores import Stores


@dataclass(frozen=True)
class Place:
    """A store that nobody else uses, and what programs have to be told about it."""

    url: str
    tables: str
    """Empty: beside the jobs."""
    artifacts: str
    environment: dict[str, str] = field(default_factory=dict)

    async def files(self) -> set[str]:
        """Return all files that are there, as the folder or the bucket itself says. Uploads that a
        kill has cut short are not.
        """
        if self.environment:
            return await asyncio.to_thread(objects_in, self.artifacts)
        return await asyncio.to_thread(_files_in, Path(self.artifacts))


def a_place(stores: Stores, engine: str, folder: Path) -> Place:
    """Make a place."""
    url = stores.url(engine, folder)
    if engine == "sqlite":
        return Place(url, f"sqlite:///{folder}/speech.db", str(folder / "files"))
    tables = stores.tables() if engine == "redis" else ""
    bucket, environment = stores.artifacts()
    return Place(url, tables, bucket, environment)


def _files_in(folder: Path) -> set[str]:
    found = (each for each in folder.rglob("*") if each.is_file())
    return {each.relative_to(folder).as_posix() for each in found if ".incoming" not in each.parts}
