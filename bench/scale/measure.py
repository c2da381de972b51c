"""What the parts of a job cost the server of a store, in processor time: what the model is made of.

Only processor time of the server's processes is counted, so a busy machine changes it little.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psutil  # type: ignore[import-untyped]
from tests.support.servers import PostgresServer, RedisServer, postgres_binaries
from tests.support.verbs import a_job, a_worker

from bench.arena import redis_server
from headrace.engine.base import Engine
from headrace.engine.open import open_engine
from headrace.model.job import ClaimedJob
from headrace.model.outcome import Completed, Settlement
from headrace.model.worker import WorkerStats

ENGINES = ("postgres", "redis")
BATCH = 100


@contextmanager
def servers(engine: str, count: int) -> Iterator[list[PostgresServer | RedisServer]]:
    """Servers that keep what they are given, as those of `make bench` do."""
    with ExitStack() as started:
        found: list[PostgresServer | RedisServer] = []
        for number in range(count):
            server = (
                PostgresServer(postgres_binaries()["postgres"], durable=True, name=f"scale{number}")
                if engine == "postgres"
                else RedisServer(redis_server(), name=f"scale{number}")
            )
            started.callback(server.destroy)
            server.start()
            found.append(server)
        yield found


def processor_seconds(server: PostgresServer | RedisServer) -> float:
    """The time that the processes of a server have used, also those that have ended."""
    assert server.process is not None
    first = psutil.Process(server.process.pid)
    times = first.cpu_times()
    total: float = times.user + times.system + times.children_user + times.children_system
    for each in first.children(recursive=True):
        own = each.cpu_times()
        total += own.user + own.system
    return total


async def parts(engine_name: str, calls: int) -> dict[str, float]:
    """Milliseconds of processor time of the server for one of each."""
    with servers(engine_name, 1) as [server]:
        engine = open_engine(server.url)
        await engine.open()
        worker = await a_worker(engine)
        found: dict[str, float] = {}

        async def per_one(name: str, count: int, work: Callable[[], Awaitable[None]]) -> None:
            before = processor_seconds(server)
            await work()
            found[name] = (processor_seconds(server) - before) * 1_000 / count

        async def inserts() -> None:
            for _ in range(calls):
                await engine.insert([a_job()])

        held: list[ClaimedJob] = []

        async def one_by_one() -> None:
            for _ in range(calls):
                done = [Settlement(job.id, job.token, Completed()) for job in held]
                reply = await engine.exchange(done, worker_id=worker, limit=1)
                held[:] = reply.jobs

        async def empty() -> None:
            for _ in range(calls):
                await engine.exchange([], worker_id=worker, limit=10)

        async def many() -> None:
            for _ in range(calls * 5 // BATCH):
                await engine.insert([a_job() for _ in range(BATCH)])

        async def batches() -> None:
            await drain(engine, worker, calls * 5)

        keeper = engine.keeper(worker, 600.0)

        def renewals() -> None:
            for _ in range(calls // 2):
                keeper.renew(WorkerStats())
            keeper.close()

        await per_one("insert of one job", calls, inserts)
        await per_one("exchange of one job", calls, one_by_one)
        await engine.exchange([Settlement(job.id, job.token, Completed()) for job in held])
        await per_one("exchange that finds nothing", calls, empty)
        await per_one(f"job inserted among {BATCH}", calls * 5, many)
        await per_one(f"job exchanged among {BATCH}", calls * 5, batches)
        await per_one("renewal of a lease", calls // 2, lambda: asyncio.to_thread(renewals))
        await engine.close()
        return found


async def drain(engine: Engine, worker: str, jobs: int) -> None:
    """Claim and settle so many jobs, as a busy worker does."""
    held: list[Settlement] = []
    done = 0
    while done < jobs:
        reply = await engine.exchange(held, worker_id=worker, limit=BATCH)
        held = [Settlement(job.id, job.token, Completed()) for job in reply.jobs]
        done += len(held)
    await engine.exchange(held)


async def stores(engine_name: str, count: int, jobs: int) -> dict[str, Any]:
    """Insert and run so many jobs with `count` stores, one of two queues in each of two, in
    batches of `BATCH` in all: the processor time of each server for each job of the whole, and that
    of this process.
    """
    with servers(engine_name, count) as started:
        urls = [server.url for server in started]
        others = {"b": urls[1]} if count > 1 else None
        engine = open_engine(urls[0], stores=others)
        await engine.open()
        worker = await a_worker(engine)
        before = [processor_seconds(server) for server in started]
        own, began = time.process_time(), time.monotonic()
        for _ in range(jobs // BATCH):
            await engine.insert([a_job(queue="ab"[number % 2]) for number in range(BATCH)])
        await drain(engine, worker, jobs)
        seconds, ours = time.monotonic() - began, time.process_time() - own
        used = [
            processor_seconds(server) - was for server, was in zip(started, before, strict=True)
        ]
        await engine.close()
    return {
        "engine": engine_name,
        "stores": count,
        "of each server, ms a job": [round(each * 1_000 / jobs, 4) for each in used],
        "of this process, ms a job": round(ours * 1_000 / jobs, 4),
        "jobs a second": round(jobs / seconds),
    }
