"""The files of a job as its handler sees them, over both kinds of store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.artifacts import open_store, place
from headrace.artifacts.index import files_of
from headrace.clock import Clock
from tests.artifacts import tasks
from tests.conftest import ENGINES, Servers, store_url
from tests.orchestrator.conftest import Worker, ended, until, worker

__all__ = ["worker"]

EXPECTED = {
    "bytes": 3,
    "streamed": 3_500_000,
    "보고서/pulled.txt": 7,
    "empty": 0,
    "from a file": 256 * 9_000,
}


@pytest.fixture
async def app(setting: str, tmp_path: Path) -> AsyncIterator[headrace.App]:
    """An App on SQLite over each kind of store."""
    async with headrace.App(f"sqlite:///{tmp_path}/jobs.db", artifacts=setting) as app:
        yield app
        assert await app.engine.audit() == []


@pytest.mark.parametrize("name", ["on_the_loop", "in_a_thread", "in_a_process"])
async def test_handlers_of_every_kind_keep_files(
    setting: str, tmp_path: Path, worker: Worker, name: str
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    tasks.app.reconfigure(headrace.Settings(url=url, artifacts=setting))
    async with tasks.app as app:
        job = await app.find_task(name).enqueue()
        await worker(app).run_until_idle()
        over = await app.get(job.id)
        assert over.result == EXPECTED, over.error
        files = await files_of(app.engine, over)
        assert files["bronze", "bytes"].media_type == "text/plain"
        report = files["gold", "보고서/pulled.txt"]
        assert report.metadata == {"언어": "ko"}
        assert report.at is not None
        assert await app.artifacts.get(report.path, sha256=report.sha256) == b"one two"


async def test_the_longest_names_are_listed_as_they_are(app: headrace.App, worker: Worker) -> None:
    names = ["한" * 1_000, "x" * 1_000 + ".csv", "deep/" * 200 + "end", "😀" * 1_024]

    @app.task(retries=0)
    async def keep(ctx: headrace.Context) -> list[str]:
        for name in names:
            await ctx.artifacts.put(name, name.encode())
        assert [(await ctx.artifacts.get(name)).decode() for name in names] == names
        return [file.name for file in await ctx.artifacts.list()]

    job = await keep.enqueue()
    await worker(app).run_until_idle()
    over = await app.get(job.id)
    assert over.result == names, over.error


@pytest.mark.parametrize("engine", ENGINES)
async def test_every_engine_indexes_the_longest_names(
    engine: str, servers: Servers, tmp_path: Path, worker: Worker
) -> None:
    url = store_url(engine, servers, tmp_path)
    async with headrace.App(url, artifacts=str(tmp_path / "artifacts")) as app:
        names = ["😀" * 1_024, "a", "é/" * 500 + "x"]

        @app.task(retries=0)
        async def keep(ctx: headrace.Context) -> list[str]:
            for name in names:
                await ctx.artifacts.put(name, b"x", metadata={"name": name})
            return [file.metadata["name"] for file in await ctx.artifacts.list()]

        job = await keep.enqueue()
        await worker(app).run_until_idle()
        over = await app.get(job.id)
        assert over.result == names, over.error


async def test_a_name_can_be_kept_again(app: headrace.App, worker: Worker) -> None:
    @app.task(retries=0)
    async def keep(ctx: headrace.Context) -> list[Any]:
        paths = [await ctx.artifacts.put("state", str(number).encode()) for number in range(3)]
        at_once = [ctx.artifacts.put("many", str(number).encode()) for number in range(10)]
        await asyncio.gather(*at_once)
        return [*paths, (await ctx.artifacts.get("many")).decode()]

    job = await keep.enqueue()
    await worker(app).run_until_idle()
    over = await app.get(job.id)
    first, second, third, many = over.result
    assert len({first, second, third}) == 3
    assert many in "0123456789"
    files = await files_of(app.engine, over)
    assert await app.artifacts.get(files["artifacts", "state"].path) == b"2"
    for replaced in (first, second):
        with pytest.raises(headrace.ArtifactNotFound):
            await app.artifact_store.size(replaced)


async def test_an_attempt_that_lost_its_lease_cannot_overwrite(
    app: headrace.App, worker: Worker, tmp_path: Path, setting: str
) -> None:
    lost, taken_over, refused = asyncio.Event(), asyncio.Event(), asyncio.Event()
    paths: dict[int, str] = {}

    @app.task(retries=3)
    async def keep(ctx: headrace.Context) -> str:
        if ctx.token == 1:
            await ctx.artifacts.put("early", b"by the first")
            lost.set()
            await taken_over.wait()
            paths[1] = place("gold", ctx.job_id, 1, "result")
            with pytest.raises(headrace.LeaseLost):
                await ctx.artifacts.put("result", b"by the lost one", layer="gold")
            refused.set()
            return "never told"
        paths[2] = await ctx.artifacts.put("result", b"by the owner", layer="gold")
        return (await ctx.artifacts.get("early")).decode()

    job = await keep.enqueue()
    first = worker(app)
    await first.start()
    await until(lost.is_set)
    # Another worker is given the job while the first still believes in it.
    async with headrace.App(f"sqlite:///{tmp_path}/jobs.db", artifacts=setting) as other:
        other.tasks.update(app.tasks)
        [view] = await other.engine.workers()
        await other.engine.retire(view.id)
        second = worker(other)
        await second.start()
        over = await ended(other, job)
        assert over.result == "by the first", over.error
        taken_over.set()
        await until(refused.is_set)
        await second.stop()
    await first.stop(grace=5)
    files = await files_of(app.engine, await app.get(job.id))
    kept = files["gold", "result"]
    assert kept.path == paths[2]
    assert await app.artifacts.get(kept.path, sha256=kept.sha256) == b"by the owner"
    with pytest.raises(headrace.ArtifactNotFound):
        await app.artifact_store.size(paths[1])


async def test_a_file_of_another_job_is_read_by_its_path(app: headrace.App, worker: Worker) -> None:
    @app.task(retries=0)
    async def make(ctx: headrace.Context) -> str:
        return await ctx.artifacts.put("made", b"content", layer="silver")

    @app.task(retries=0)
    async def use(ctx: headrace.Context, path: str) -> list[Any]:
        found = await ctx.artifacts.find(path)
        return [(await ctx.artifacts.get(path)).decode(), found.size, found.layer]

    made = await make.enqueue()
    await worker(app).run_until_idle()
    path = (await app.get(made.id)).result
    used = await use.enqueue(path=path)
    bad = await use.enqueue(path=f"silver/{made.id}/1/../../../jobs.db")
    await worker(app).run_until_idle()
    assert (await app.get(used.id)).result == ["content", 7, "silver"]
    assert "artifact" in ((await app.get(bad.id)).error or "")


async def test_what_is_said_about_a_file_is_checked(app: headrace.App, worker: Worker) -> None:
    odd: list[dict[str, Any]] = [
        {"media_type": "no type"},
        {"media_type": "text/html\r\nX-Evil: 1"},
        {"metadata": {"a": 1}},
        {"metadata": {"a": "x" * 10_000}},
        {"layer": "lead"},
    ]

    @app.task(retries=0)
    async def keep(ctx: headrace.Context) -> list[str]:
        told = []
        for each in odd:
            with pytest.raises(headrace.InvalidInput) as raised:
                await ctx.artifacts.put("a", b"x", **each)
            told.append(str(raised.value))
        assert await ctx.artifacts.list() == []
        return told

    job = await keep.enqueue()
    await worker(app).run_until_idle()
    over = await app.get(job.id)
    assert len(over.result) == len(odd), over.error


async def test_a_store_that_is_away_is_a_reason_to_try_again(
    tmp_path: Path, clock: Clock, worker: Worker
) -> None:
    url, folder = f"sqlite:///{tmp_path}/jobs.db", tmp_path / "artifacts"
    async with headrace.App(url, artifacts=str(folder), clock=clock) as app:
        app.artifact_store.pauses = (0.01,)
        folder.write_text("not mounted")

        @app.task(retries=1)
        async def keep(ctx: headrace.Context) -> str:
            return await ctx.artifacts.put("a", b"x")

        job = await keep.enqueue()
        await worker(app).run_until_idle()
        waiting = await app.get(job.id)
        assert waiting.status is headrace.Status.SCHEDULED
        assert "EngineUnavailable" in str(waiting.attempts[0].failure)
        assert await app.engine.entries(job.id, "artifact") == []
        folder.unlink()
        clock.advance(10)
        await worker(app).run_until_idle()
        over = await app.get(job.id)
        assert over.status is headrace.Status.COMPLETED
        assert await open_store(folder).get(over.result) == b"x"


@pytest.fixture
def clock() -> Clock:
    return Clock()
