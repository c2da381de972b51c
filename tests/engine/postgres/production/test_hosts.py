"""Several servers in one URL: the one that takes writes is found, and left when it stops to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from headrace.clock import Clock
from headrace.engine.postgres.connection import connector
from headrace.engine.postgres.connection.address import parse_address
from headrace.engine.postgres.engine import PostgresEngine
from headrace.errors import EngineRefused, EngineUnavailable, InvalidSetting
from headrace.model.worker import WorkerStats
from tests.support.processes import until
from tests.support.replicas import Pair, ask
from tests.support.verbs import LEASE, a_worker, claim, complete, enqueue


@contextlib.asynccontextmanager
async def silent_host() -> AsyncIterator[int]:
    """A server that is switched off, nearly: it takes connections and says nothing."""
    held: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in held:
            writer.close()


def with_hosts(url: str, *others: int) -> str:
    """The same store with other hosts before it."""
    before = "".join(f"127.0.0.1:{port}," for port in others)
    return url.replace("@", f"@{before}", 1)


def test_hosts_are_read_from_the_url() -> None:
    assert parse_address("postgresql://u:p@a,b:2,[::1]:3/d?schema=s").hosts == (
        ("a", 5432),
        ("b", 2),
        ("::1", 3),
    )
    assert parse_address("postgresql:///d?host=a,b&port=1,2").hosts == (("a", 1), ("b", 2))
    assert parse_address("postgresql:///d?host=a,b&port=7").hosts == (("a", 7), ("b", 7))
    assert parse_address("postgresql://u:secret@a,b/d").shown == "a,b/d"
    assert parse_address("postgresql://u@a:1/d").hosts == ()


def test_where_signals_come_from_is_read_from_the_url() -> None:
    address = parse_address("postgresql://u:p@pool:6432/d?schema=s&listen=a:1,b:2&sslmode=require")
    wakeups = address.wakeups
    assert wakeups is not None
    assert wakeups.dsn == "postgresql://u:p@a:1,b:2/d?sslmode=require"
    assert wakeups.hosts == (("a", 1), ("b", 2))
    assert (wakeups.schema, wakeups.shown) == ("s", "a:1,b:2/d")
    assert "listen" not in address.dsn
    named = parse_address("postgresql://u@pool/short?listen=a:1/real").wakeups
    assert named is not None
    assert named.dsn == "postgresql://u@a:1/real"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://a,:1/d", "host without a name"),
        ("postgresql://a:x,b/d", "port 'x'"),
        ("postgresql://a:99999,b/d", "port '99999'"),
        ("postgresql:///d?host=a,b,c&port=1,2", "3 hosts and 2 ports"),
        ("postgresql://a/d?pooler=statement", "pooler 'statement'"),
    ],
)
def test_what_cannot_be_read_is_named(url: str, words: str) -> None:
    with pytest.raises(InvalidSetting, match=words):
        parse_address(url)


async def test_hosts_that_are_down_or_silent_are_passed_over(
    direct_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "HOST_SECONDS", 0.5)
    async with silent_host() as silent:
        engine = PostgresEngine(with_hosts(direct_url, 1, silent), clock=Clock())
        async with asyncio.timeout(8):
            await engine.open()
        assert await enqueue(engine)
        # It is asked first from now on.
        assert engine.connector._first == 2
        await engine.close()


async def test_of_servers_that_are_all_away_each_is_named() -> None:
    engine = PostgresEngine("postgresql://u:secret@127.0.0.1:1,127.0.0.1:2/d", clock=Clock())
    with pytest.raises(
        EngineUnavailable, match=r"none.*127\.0\.0\.1:1: .*127\.0\.0\.1:2: "
    ) as info:
        await engine.open()
    assert "secret" not in str(info.value)


async def test_a_database_that_is_on_none_of_them_is_refused(direct_url: str) -> None:
    port = parse_address(direct_url).shown.partition("/")[0].rpartition(":")[2]
    url = f"postgresql://postgres@127.0.0.1:{port},127.0.0.1:{port}/nowhere"
    with pytest.raises(EngineRefused, match="Create the database"):
        await PostgresEngine(url, clock=Clock()).open()


async def test_a_server_that_only_reads_is_left_under_live_connections() -> None:
    pair = Pair(synchronous=True)
    try:
        await pair.start()
        assert pair.standby is not None
        # The standby is named first, and it answers, but it takes no writes.
        hosts = f"127.0.0.1:{pair.standby.port},127.0.0.1:{pair.primary.port}"
        listen = f"listen={hosts}"
        engine = PostgresEngine(f"postgresql://postgres@{hosts}/postgres?{listen}", clock=Clock())
        await engine.open()
        worker = await a_worker(engine)
        keeper = engine.keeper(worker, LEASE)
        work = asyncio.Event()
        stop = await engine.listen(work.set, lambda _: None)
        await enqueue(engine)
        await enqueue(engine)
        jobs = await claim(engine, worker, 1)
        assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive

        # Nobody is cut off: the primary still answers, as one that was fenced does.
        await pair.promote()
        await ask(pair.primary, "ALTER SYSTEM SET default_transaction_read_only = on")
        await ask(pair.primary, "SELECT pg_reload_conf()")

        async def only_reads() -> bool:
            [row] = await ask(pair.primary, "SHOW default_transaction_read_only")
            return bool(row[0] == "on")

        await until(only_reads)
        # What was refused was done by nobody, so it is done again, elsewhere; nobody is told.
        [job] = jobs
        assert await complete(engine, job)
        assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
        assert len(await claim(engine, worker, 9)) == 1
        found = await ask(pair.standby, "SELECT DISTINCT application_name FROM pg_stat_activity")
        names = {row[0] for row in found}
        assert {"headrace exchange", "headrace lease"} <= names
        # Those that only listen follow, too.
        await engine._signals._look_after()
        work.clear()
        await enqueue(engine)
        await asyncio.wait_for(work.wait(), 20)
        assert await engine.audit() == []
        stop()
        await asyncio.to_thread(keeper.close)
        await engine.close()
    finally:
        pair.destroy()
