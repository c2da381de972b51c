"""From a URL to an engine. Drivers are imported only for the engine that is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from headrace.clock import Clock
from headrace.engine.stored_text import redacted
from headrace.errors import InvalidSetting, MissingDriver

if TYPE_CHECKING:
    from headrace.engine.base import Engine

Migrate = Literal["auto", "never"]

REDIS = ("redis", "rediss", "valkey", "unix")
DRIVERS = ("asyncpg", "redis", "hiredis")
FORMS = "sqlite:///path.db, postgresql://user@host/database or redis://host:6379/0"


def open_engine(url: str, *, clock: Clock | None = None, migrate: Migrate = "auto") -> Engine:
    """Make the engine for a URL. Nothing is connected until its `open()`, which changes the schema
    of the store only if `migrate` is "auto".
    """
    may = migrate == "auto"
    clock = clock or Clock()
    scheme = urlsplit(url).scheme if isinstance(url, str) else ""
    try:
        match scheme:
            case "sqlite":
                from headrace.engine.sqlite.engine import SqliteEngine  # noqa: PLC0415

                return SqliteEngine(url, clock=clock, migrate=may)
            case "postgresql" | "postgres":
                from headrace.engine.postgres.engine import PostgresEngine  # noqa: PLC0415

                return PostgresEngine(url, clock=clock, migrate=may)
            case _ if scheme.partition("+")[0] in REDIS:
                from headrace.engine.redis.engine import RedisEngine  # noqa: PLC0415

                return RedisEngine(url, clock=clock, migrate=may)
    except ModuleNotFoundError as error:
        if error.name not in DRIVERS:
            raise
        extra = "redis" if scheme.partition("+")[0] in REDIS else "postgres"
        raise MissingDriver(
            f'The driver "{error.name}" for {scheme}:// is not installed. '
            f'Install it with: pip install "headrace[{extra}]"'
        ) from None
    raise InvalidSetting(f"HEADRACE_URL has the unknown form {redacted(url)!r}; use {FORMS}")


def in_memory(url: str) -> bool:
    """Whether the jobs are in the memory of the process that has opened the engine."""
    if urlsplit(url).scheme != "sqlite":
        return False
    from headrace.engine.sqlite.connection.address import parse_address  # noqa: PLC0415

    return parse_address(url).path is None
