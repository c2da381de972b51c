"""From a URL to an engine. Drivers are imported only for the engine that is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from headrace.clock import Clock
from headrace.engine.stored_text import redacted
from headrace.errors import InvalidSetting, MissingDriver

if TYPE_CHECKING:
    from headrace.engine.base import Engine
    from headrace.engine.several.engine import SeveralStores

Migrate = Literal["auto", "never"]

REDIS = ("redis", "rediss", "valkey", "unix")
DRIVERS = ("asyncpg", "redis", "hiredis")
FORMS = "sqlite:///path.db, postgresql://user@host/database or redis://host:6379/0"


def open_engine(
    url: str,
    *,
    stores: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    migrate: Migrate = "auto",
) -> Engine:
    """Make the engine for a URL, or the one over several `stores`: their URLs by the queues that
    are there. Nothing is connected until its `open()`, which changes the schema of a store only if
    `migrate` is "auto".
    """
    may = migrate == "auto"
    clock = clock or Clock()
    if stores:
        return _several(url, stores, clock, migrate)
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


def _several(url: str, stores: Mapping[str, str], clock: Clock, migrate: Migrate) -> SeveralStores:
    # Most programs have one store, and do not pay for this.
    from headrace.engine.several.engine import SeveralStores  # noqa: PLC0415
    from headrace.engine.several.store.member import Member  # noqa: PLC0415
    from headrace.engine.several.store.routes import DEFAULT  # noqa: PLC0415

    made: dict[str, Member] = {}
    for queues, each in {DEFAULT: url, **stores}.items():
        name = queues or "default"
        if in_memory(each):
            raise InvalidSetting(
                f"the store of {name!r} is in the memory of a process, which several stores cannot "
                "be; use a file: sqlite:///path.db"
            )
        if each not in made:
            made[each] = Member(
                name, redacted(each), open_engine(each, clock=clock, migrate=migrate)
            )
    others = {queues: made[each] for queues, each in stores.items()}
    return SeveralStores(made[url], others, clock=clock)


def in_memory(url: str) -> bool:
    """Whether the jobs are in the memory of the process that has opened the engine."""
    if urlsplit(url).scheme != "sqlite":
        return False
    from headrace.engine.sqlite.connection.address import parse_address  # noqa: PLC0415

    return parse_address(url).path is None
