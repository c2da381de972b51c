"""Nothing of what an encrypted task is given, and tells, is in the files of the store, in artifacts
or in log lines.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

import headrace
from headrace.config import Settings
from headrace.model.job import Job
from headrace.model.status import FINAL, State
from tests.encryption import jobs
from tests.encryption.conftest import K1, Worker, until
from tests.support.servers import (
    PostgresServer,
    RedisServer,
    Server,
    postgres_binaries,
    redis_binaries,
)

ENGINES = ("sqlite", "postgres", "redis")


class Store:
    """A store, and the folder with all that it has written."""

    def __init__(self, engine: str, folder: Path, server: Server | None) -> None:
        self.engine = engine
        self.folder = folder if server is None else server.folder
        self.url = f"sqlite:///{folder}/store.db" if server is None else server.url

    async def write_out(self) -> None:
        """Have everything written to files."""
        if self.engine == "postgres":
            connection = await asyncpg.connect(self.url)
            await connection.execute("CHECKPOINT")
            await connection.close()
        elif self.engine == "redis":
            await asyncio.to_thread(_save, self.url)

    def holds(self, text: str) -> list[str]:
        """Return the files that have this text in them."""
        return found_in(self.folder, text)


def _save(url: str) -> None:
    port = int(url.rsplit(":", 1)[1].partition("/")[0])
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"SAVE\r\n")
        assert connection.recv(64).startswith(b"+OK")


def found_in(folder: Path, text: str) -> list[str]:
    """Return the files of a folder that have a text in them."""
    needle = text.encode()
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and needle in path.read_bytes()
    ]


@pytest.fixture(scope="module", params=ENGINES)
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """A server that no other tests write to: all its files are read."""
    server: Server | None = None
    match request.param:
        case "postgres":
            server = PostgresServer(postgres_binaries()["postgres"], name="sealed")
        case "redis":
            server = RedisServer(redis_binaries()["redis"], name="sealed", fsync="always")
    if server is not None:
        server.start()
    yield Store(request.param, tmp_path_factory.mktemp("store"), server)
    if server is not None:
        server.destroy()


async def leave_everything(
    store: Store, kind: str, folder: Path, worker: Worker, *, encrypt: bool
) -> tuple[Job, dict[str, str]]:
    """Run a job that stores something in every place, and return it with what it stored."""
    app, markers = jobs.app, jobs.make_markers()
    event = f"event-{uuid4().hex}"
    app.reconfigure(
        Settings(
            url=store.url,
            artifacts=str(folder / "artifacts"),
            payload_limit=jobs.PAYLOAD_LIMIT,
            encryption_keys=f"k1:{K1}",
            encrypt_all=encrypt,
            allow_private_webhooks=True,
        )
    )
    async with app:
        options = {"url": "http://127.0.0.1:9/", "timeout": 2}
        await app.put_destination("nobody", "webhook", options, retries=0)
        orchestrator = worker(app)
        await orchestrator.start()
        job = await app.tasks[kind].enqueue(markers)

        async def waits() -> bool:
            now = await app.get(job)
            return now.state is State.SCHEDULED and bool(now.awaits)

        await until(waits)
        assert await app.signal(job.id, "approved", event) == "delivered"
        result = await app.result(job, timeout=20)
        assert result == {"stage": markers["stage"], "event": event, "result": markers["result"]}

        async def delivered() -> bool:
            wanted = headrace.JobFilter(
                tasks=("headrace.deliver",), statuses=tuple(FINAL), created_after=job.created_at
            )
            return bool((await app.list(wanted)).jobs)

        await until(delivered)
        ended = await app.get(job)
        await orchestrator.stop()
        await store.write_out()
        return ended, markers | {"event": event}


@pytest.mark.parametrize("kind", jobs.KINDS)
async def test_nothing_is_stored_in_plain(
    store: Store, kind: str, tmp_path: Path, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    job, markers = await leave_everything(store, kind, tmp_path, worker, encrypt=True)
    for place, text in markers.items():
        assert not store.holds(text), place
        assert not found_in(tmp_path / "artifacts", text), place
        assert text not in caplog.text, place
    # With the keys all of it is there.
    assert job.args == {
        "markers": {name: text for name, text in markers.items() if name != "event"}
    }
    [failure] = [each.failure for each in job.attempts if each.failure is not None]
    assert failure.type == "ValueError"
    assert failure.message == f"{markers['error']} of {markers['event']}"
    assert markers["error"] in (failure.traceback or "")


async def test_the_search_would_find_it(
    store: Store, tmp_path: Path, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    """The same without encryption: each text is found somewhere, so that its absence says
    something.
    """
    _, markers = await leave_everything(store, "async", tmp_path, worker, encrypt=False)
    for place, text in markers.items():
        found: Any = store.holds(text) or found_in(tmp_path / "artifacts", text)
        assert found, place
    assert found_in(tmp_path / "artifacts", markers["large"])
    assert markers["error"] in caplog.text
