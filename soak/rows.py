"""What is in a store: rows of every table, keys of every kind, connections, and its size."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import redis.asyncio
from chaos.stores import PostgresStore, RedisStore, SqliteStore, Store

MEGABYTE = 1e6
# Keys that are looked up in one go.
STEP = 500
LENGTHS = {
    "hash": "HLEN",
    "zset": "ZCARD",
    "list": "LLEN",
    "set": "SCARD",
    "stream": "XLEN",
    "string": "STRLEN",
}
RECORDS = ("records", "record_index")


@dataclass
class Inside:
    """One look into a store. A file has no connections."""

    rows: dict[str, float] = field(default_factory=dict)
    megabytes: float = 0.0
    connections: int | None = None


async def look_inside(store: Store) -> Inside:
    """Count everything."""
    match store:
        case SqliteStore():
            return _sqlite(store)
        case PostgresStore():
            return await _postgres(store)
        case RedisStore():
            return await _redis(store)
    raise TypeError(f"no such store: {store!r}")


def _sqlite(store: SqliteStore) -> Inside:
    found = Inside()
    with contextlib.closing(sqlite3.connect(f"file:{store.path}?mode=ro", uri=True)) as connection:
        connection.execute("PRAGMA busy_timeout = 5000")
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (name,) in names:
            if name != "record":  # those are counted by kind
                [(count,)] = connection.execute(f'SELECT count(*) FROM "{name}"')
                found.rows[name] = count
        for kind, count in connection.execute("SELECT kind, count(*) FROM record GROUP BY kind"):
            found.rows[f"record {kind}"] = count
    files = [store.path, *store.path.parent.glob(f"{store.path.name}-*")]
    found.megabytes = sum(each.stat().st_size for each in files if each.exists()) / MEGABYTE
    return found


async def _postgres(store: PostgresStore) -> Inside:
    found = Inside()
    connection = await asyncpg.connect(store.url(), timeout=10)
    try:
        tables = await connection.fetch(
            "SELECT schemaname, relname FROM pg_stat_user_tables ORDER BY relname"
        )
        for schema, name in tables:
            if name != "record":
                found.rows[name] = await connection.fetchval(
                    f'SELECT count(*) FROM "{schema}"."{name}"'
                )
                continue
            kinds = await connection.fetch(
                f'SELECT kind, count(*) FROM "{schema}"."{name}" GROUP BY kind'
            )
            found.rows |= {f"record {kind}": count for kind, count in kinds}
        size = await connection.fetchval("SELECT pg_database_size(current_database())")
        found.megabytes = size / MEGABYTE
        found.connections = await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
    finally:
        await connection.close()
    return found


async def _redis(store: RedisStore) -> Inside:
    found = Inside()
    client: Any = redis.asyncio.Redis.from_url(store.url(), decode_responses=False)
    async with client:
        keys = [key async for key in client.scan_iter(count=STEP)]
        for start in range(0, len(keys), STEP):
            step = keys[start : start + STEP]
            async with client.pipeline(transaction=False) as several:
                for key in step:
                    several.type(key)
                kinds = [kind.decode() for kind in await several.execute()]
                for key, kind in zip(step, kinds, strict=True):
                    several.execute_command(LENGTHS.get(kind, "EXISTS"), key)
                lengths = await several.execute(raise_on_error=False)
            for key, kind, length in zip(step, kinds, lengths, strict=True):
                name = family(key.decode(errors="replace"))
                if name in RECORDS:
                    found.rows |= await _records(client, key, kind)
                elif kind in LENGTHS and isinstance(length, int):  # else it is gone since
                    _count(found.rows, name, kind, length)
        info = await client.info("memory")
        found.megabytes = info["used_memory"] / MEGABYTE
        # Without the one that asks.
        found.connections = (await client.info("clients"))["connected_clients"] - 1
    return found


async def _records(client: Any, key: bytes, kind: str) -> dict[str, float]:
    """The records by kind, each of which is in a hash and in an index."""
    if kind != "hash":
        return {}
    kinds = Counter(field.partition(b"\0")[0].decode() for field in await client.hkeys(key))
    return {f"record {name}": float(count) for name, count in kinds.items()}


def _count(rows: dict[str, float], name: str, kind: str, length: int) -> None:
    """A key of its own for each thing counts as one, and what is in it besides."""
    name = f"{kind} {name}"
    rows[name] = rows.get(name, 0) + (1 if kind == "string" else length)


def family(key: str) -> str:
    """What a key is about, without the names that are in it."""
    parts = key.split(":")
    return parts[1] if len(parts) > 1 else key
