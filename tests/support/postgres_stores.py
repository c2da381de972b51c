"""Empty stores on a PostgreSQL server, at a fraction of what a new schema costs."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from headrace.engine.open import open_engine

TEMPLATE = "empty_store"
SCHEMA = "headrace"


class PostgresStores:
    """Databases of one server, each a copy of one that has been migrated.

    Schemas of one database get dearer: with three hundred of them a new one takes twice as long,
    because functions of the same name are looked for in all of them.
    """

    def __init__(self, server_url: str) -> None:
        self._url = server_url
        self._numbers = itertools.count(1)
        self._made: list[str] = []
        self._connection: psycopg.Connection | None = None

    def new(self) -> str:
        """Return the URL of a store that has been migrated and that nobody else uses."""
        if self._connection is None:
            self._connection = psycopg.connect(self._url, autocommit=True)
            self._run("CREATE DATABASE {}", TEMPLATE)
            _in_a_thread(self._migrate)
        name = f"t{next(self._numbers)}"
        self._run("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy", name, TEMPLATE)
        self._made.append(name)
        return self._url_of(name)

    def made(self) -> int:
        """Return how many there are."""
        return len(self._made)

    def drop(self, keep: int) -> None:
        """Drop all but the first ones. Whoever is still connected is cut off."""
        for name in self._made[keep:]:
            self._run("DROP DATABASE {} WITH (FORCE)", name)
        del self._made[keep:]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _run(self, statement: str, *names: str) -> None:
        assert self._connection is not None
        self._connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

    def _url_of(self, database: str) -> str:
        parts = urlsplit(self._url)
        return urlunsplit(parts._replace(path=f"/{database}", query=f"schema={SCHEMA}"))

    async def _migrate(self) -> None:
        engine = open_engine(self._url_of(TEMPLATE))
        await engine.open()
        await engine.close()


def _in_a_thread(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine function, also where a loop runs already."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
