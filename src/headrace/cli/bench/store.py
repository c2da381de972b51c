"""A store for measuring: next to the one that is in use, and removed again."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit
from uuid import uuid4

from headrace.cli.errors import notice
from headrace.engine.sqlite.connection.address import parse_address
from headrace.errors import EngineError

PREFIX = "headrace_bench_"


class Scratch:
    """Where to measure. Whoever has opened it says so, and hears if it cannot be removed."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.opened = False


@contextlib.asynccontextmanager
async def scratch(url: str) -> AsyncIterator[Scratch]:
    """An empty store next to the one at `url`; it is removed at the end."""
    name = PREFIX + uuid4().hex[:12]
    match urlsplit(url).scheme:
        case "sqlite":
            path = parse_address(url).path
            if path is None:
                yield Scratch(url)  # in memory: every App has its own
                return
            path = path.absolute().with_name(f"{name}.db")
            query = urlsplit(url).query
            try:
                yield Scratch(f"sqlite:///{quote(str(path))}" + (f"?{query}" if query else ""))
            finally:
                _remove_file(path)
        case "postgresql" | "postgres":
            beside = Scratch(_with(url, "schema", name))
            try:
                yield beside
            finally:
                await _remove_schema(beside, name)
        case _:
            beside = Scratch(_with(url, "namespace", name))
            try:
                yield beside
            finally:
                await _remove_keys(beside, name)


def _with(url: str, option: str, value: str) -> str:
    parts = urlsplit(url)
    kept = [each for each in parse_qsl(parts.query, keep_blank_values=True) if each[0] != option]
    return parts._replace(query=urlencode([*kept, (option, value)])).geturl()


def _remove_file(path: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + end).unlink(missing_ok=True)


async def _remove_schema(store: Scratch, name: str) -> None:
    try:
        import asyncpg  # noqa: PLC0415 - an extra

        from headrace.engine.postgres.connection.address import parse_address as parse  # noqa: PLC0415
    except ModuleNotFoundError:
        return  # nothing could be made without it
    address = parse(store.url)
    try:
        connection = await asyncpg.connect(address.dsn)
        try:
            await connection.execute(f"DROP SCHEMA IF EXISTS {address.quoted_schema} CASCADE")
        finally:
            await connection.close()
    except (OSError, TimeoutError, asyncpg.PostgresError) as error:
        _left_behind(store, f"schema {name}", error)


async def _remove_keys(store: Scratch, name: str) -> None:
    try:
        from headrace.engine.redis.connection.address import RedisAddress  # noqa: PLC0415 - an extra
        from headrace.engine.redis.connection.link import RedisConnection  # noqa: PLC0415
        from headrace.engine.redis.scripts import names, script  # noqa: PLC0415
    except ModuleNotFoundError:
        return  # nothing could be made without it
    address = RedisAddress.parse(store.url)
    keys = {key for verb in names() for key in script(verb).keys}
    link = RedisConnection(address)
    try:
        await link.call("UNLINK", *(address.prefix + key for key in sorted(keys)))
    except EngineError as error:
        _left_behind(store, f"namespace {name}", error)
    finally:
        await link.close()


def _left_behind(store: Scratch, what: str, error: BaseException) -> None:
    if store.opened:
        notice(f"note: the {what} could not be removed ({type(error).__name__}); do it by hand")
