"""rediss:// URLs: every connection talks TLS, and checks whom it talks to."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

import headrace
from headrace.clock import Clock
from headrace.engine.redis.connection.address import RedisAddress
from headrace.engine.redis.connection.errors import unavailable
from headrace.engine.redis.engine import RedisEngine
from headrace.errors import EngineError, EngineUnavailable, InvalidSetting
from headrace.model.worker import WorkerStats
from tests.conftest import Servers
from tests.support.tls import Authority, tls_door
from tests.support.verbs import LEASE, a_job, a_worker, claim, complete, enqueue, the_job

HOSTS = ("127.0.0.1", "localhost")


class Doors:
    """Opens TLS doors in front of the shared server."""

    def __init__(self, port: int, stack: AsyncExitStack) -> None:
        self._port = port
        self._stack = stack

    async def url(
        self,
        certificate: tuple[Path, Path],
        *,
        clients: Path | None = None,
        host: str = "127.0.0.1",
        **options: object,
    ) -> str:
        door = tls_door(self._port, certificate, clients=clients)
        port = await self._stack.enter_async_context(door)
        asked = {"namespace": f"t{uuid4().hex[:12]}", "timeout": 10, **options}
        query = "&".join(f"{name}={value}" for name, value in asked.items())
        return f"rediss://{host}:{port}/0?{query}"


@pytest.fixture
async def doors(redis_name: str, servers: Servers) -> AsyncIterator[Doors]:
    port = RedisAddress.parse(servers.url(redis_name)).port
    async with AsyncExitStack() as stack:
        yield Doors(port, stack)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def url(doors: Doors, authority: Authority) -> str:
    """A store behind a certificate that is as it should be."""
    return await doors.url(authority.issue(*HOSTS), ssl_ca_certs=authority.file)


@pytest.fixture
async def engine(url: str) -> AsyncIterator[RedisEngine]:
    engine = RedisEngine(url, clock=Clock())
    await engine.open()
    yield engine
    assert await engine.audit() == []
    await engine.close()


async def test_a_job_goes_its_way_over_tls(engine: RedisEngine) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine, args=b'{"a": 1}')
    [job] = await claim(engine, worker)
    assert (job.id, job.args) == (job_id, b'{"a": 1}')
    assert await complete(engine, job, b'"done"')
    assert (await the_job(engine, job_id)).result_json == b'"done"'


async def test_large_messages_pass_in_both_directions(engine: RedisEngine) -> None:
    worker = await a_worker(engine)
    jobs = [a_job(args=b'"%d%s"' % (n, b"x" * 6_000_000)) for n in range(4)]
    await engine.insert(jobs)
    claimed = await claim(engine, worker, 4)
    assert [job.args for job in claimed] == [job.args for job in jobs]
    assert await complete(engine, claimed[0], b'"%s"' % (b"y" * 6_000_000))
    [done] = await engine.get([claimed[0].id])
    assert done.result_json == b'"%s"' % (b"y" * 6_000_000)


async def test_many_callers_share_a_tls_connection(engine: RedisEngine) -> None:
    inserted = await asyncio.gather(
        *(engine.insert([a_job(args=b'"%d%s"' % (n, b"x" * n * 500))]) for n in range(200))
    )
    found = await engine.get([answer.id for [answer] in inserted])
    assert [len(job.args_json) for job in found] == [n * 500 + 2 + len(str(n)) for n in range(200)]


async def test_a_lease_is_renewed_over_tls(engine: RedisEngine) -> None:
    keeper = engine.keeper(await a_worker(engine), LEASE)
    for _ in range(3):
        assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
    await asyncio.to_thread(keeper.close)


async def test_signals_arrive_over_tls(engine: RedisEngine) -> None:
    work, cancelled = asyncio.Event(), asyncio.Queue[str]()
    stop = await engine.listen(work.set, cancelled.put_nowait)
    assert engine.listening
    job_id = await enqueue(engine)
    await asyncio.wait_for(work.wait(), 60)
    [job] = await claim(engine, await a_worker(engine))
    await engine.cancel([job_id])
    assert await asyncio.wait_for(cancelled.get(), 60) == job_id
    assert await complete(engine, job)
    stop()


async def test_a_worker_runs_jobs_over_tls(url: str, tmp_path: Path) -> None:
    async with headrace.App(url, artifacts=str(tmp_path / "artifacts")) as app:

        @app.task
        async def add(a: int, b: int) -> int:
            return a + b

        async with headrace.JobOrchestrator(app):
            jobs = await app.enqueue_many(add.job(n, 1) for n in range(50))
            assert [await app.result(job.id, timeout=20) for job in jobs] == list(range(1, 51))


async def test_a_host_name_is_checked(doors: Doors, authority: Authority) -> None:
    url = await doors.url(
        authority.issue("localhost"), host="localhost", ssl_ca_certs=authority.file
    )
    engine = RedisEngine(url, clock=Clock())
    await engine.open()
    await engine.close()


async def test_a_client_shows_its_certificate(doors: Doors, authority: Authority) -> None:
    file, key = authority.issue("me", name="client")
    url = await doors.url(
        authority.issue(*HOSTS),
        clients=authority.file,
        ssl_ca_certs=authority.file,
        ssl_certfile=file,
        ssl_keyfile=key,
    )
    engine = RedisEngine(url, clock=Clock())
    await engine.open()
    keeper = engine.keeper(await a_worker(engine), LEASE)
    assert (await asyncio.to_thread(keeper.renew, WorkerStats())).alive
    await asyncio.to_thread(keeper.close)
    await engine.close()


def of_another_authority(authority: Authority, folder: Path) -> tuple[tuple[Path, Path], Path]:
    return authority.issue(*HOSTS), Authority(folder, "another").file


def expired(authority: Authority, folder: Path) -> tuple[tuple[Path, Path], Path]:
    return authority.issue(*HOSTS, age=timedelta(days=30)), authority.file


def of_another_host(authority: Authority, folder: Path) -> tuple[tuple[Path, Path], Path]:
    return authority.issue("elsewhere.example"), authority.file


Fault = Callable[[Authority, Path], tuple[tuple[Path, Path], Path]]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (of_another_authority, "certificate.*ssl_ca_certs"),
        (expired, "certificate has expired.*Renew"),
        (of_another_host, "not valid for '127.0.0.1'.*host name"),
    ],
)
async def test_a_certificate_that_does_not_fit_is_refused_with_the_remedy(
    doors: Doors, authority: Authority, tmp_path: Path, fault: Fault, says: str
) -> None:
    certificate, trusted = fault(authority, tmp_path)
    url = await doors.url(certificate, ssl_ca_certs=trusted)
    engine = RedisEngine(url, clock=Clock())
    with pytest.raises(EngineError, match=says) as caught:
        await engine.open()
    assert not isinstance(caught.value, EngineUnavailable), "trying again does not help"
    keeper = engine.keeper("worker", LEASE)
    for _ in range(2):
        with pytest.raises(EngineError, match=says):
            await asyncio.to_thread(keeper.renew, WorkerStats())
    await asyncio.to_thread(keeper.close)
    stop = await engine.listen(lambda: None, lambda _: None)
    assert not engine.listening
    stop()
    await engine.close()


async def test_a_server_without_tls_is_told(redis_name: str, servers: Servers) -> None:
    """A Redis that is greeted in TLS says nothing: it waits for the end of the line."""
    url = servers.url(redis_name).replace("redis://", "rediss://")
    engine = RedisEngine(f"{url}?timeout=0.5", clock=Clock())
    with pytest.raises(EngineUnavailable, match=r"does not speak TLS.*redis://"):
        await engine.open()
    keeper = engine.keeper("worker", LEASE)
    with pytest.raises(EngineUnavailable, match=r"does not speak TLS.*redis://"):
        await asyncio.to_thread(keeper.renew, WorkerStats())
    await asyncio.to_thread(keeper.close)
    await engine.close()


async def test_a_missing_client_certificate_is_told(doors: Doors, authority: Authority) -> None:
    url = await doors.url(
        authority.issue(*HOSTS), clients=authority.file, ssl_ca_certs=authority.file
    )
    engine = RedisEngine(url, clock=Clock())
    with pytest.raises(EngineError, match=r"ssl_certfile"):
        await engine.open()
    keeper = engine.keeper("worker", LEASE)
    with pytest.raises(EngineError, match=r"ssl_certfile"):
        await asyncio.to_thread(keeper.renew, WorkerStats())
    await asyncio.to_thread(keeper.close)
    await engine.close()


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("WRONG_VERSION_NUMBER", "does not speak TLS.*redis://"),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "ssl_certfile"),
        ("TLSV1_ALERT_UNKNOWN_CA", "ssl_certfile"),
    ],
)
def test_what_the_other_side_says_of_tls_is_told_with_the_remedy(reason: str, says: str) -> None:
    """What OpenSSL hears from servers that answer before they hang up."""
    error = ssl.SSLError(1, f"[SSL: {reason}] in words")
    error.reason = reason
    found = unavailable(RedisAddress.parse("rediss://h"), error)
    assert not isinstance(found, EngineUnavailable)
    assert re.search(says, str(found))


def test_a_line_that_breaks_within_tls_is_an_outage() -> None:
    error = ssl.SSLEOFError(8, "EOF occurred in violation of protocol")
    assert isinstance(unavailable(RedisAddress.parse("rediss://h"), error), EngineUnavailable)


@pytest.mark.parametrize("option", ["ssl_ca_certs", "ssl_certfile"])
async def test_a_file_that_cannot_be_used_is_named(option: str, tmp_path: Path) -> None:
    engine = RedisEngine(f"rediss://127.0.0.1:1/0?{option}={tmp_path}/none.pem", clock=Clock())
    with pytest.raises(EngineError, match=rf"{option}.*none\.pem"):
        await engine.open()
    keeper = engine.keeper("worker", LEASE)
    for _ in range(2):
        with pytest.raises(EngineError, match=rf"{option}.*none\.pem"):
            await asyncio.to_thread(keeper.renew, WorkerStats())
    await asyncio.to_thread(keeper.close)
    await engine.close()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis://h/0?ssl_ca_certs=a.pem", "rediss://"),
        ("unix:///s.sock?ssl_certfile=a.pem", "rediss://"),
        ("rediss://h/0?ssl_keyfile=a.key", "ssl_certfile"),
    ],
)
def test_settings_of_tls_that_would_be_ignored_are_refused(url: str, says: str) -> None:
    with pytest.raises(InvalidSetting, match=says):
        RedisAddress.parse(url)
