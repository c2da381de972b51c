"""Files go with their job, and only with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import headrace
from headrace.artifacts import ArtifactStore, open_store, pending_uploads, place
from headrace.artifacts.index import files_of
from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.errors import ArtifactNotFound, EngineUnavailable
from headrace.model.ids import new_id
from headrace.model.job import NewJob
from headrace.upkeep import Files, Prune, files
from headrace.upkeep.files import PRUNED
from tests.conftest import ENGINES, Servers, store_url
from tests.orchestrator.conftest import until
from tests.server.conftest import client_of


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def app(setting: str, tmp_path: Path, clock: Clock) -> AsyncIterator[headrace.App]:
    """An App on SQLite over each kind of store."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with headrace.App(url, artifacts=setting, clock=clock) as app:
        yield app


def the_loop(app: headrace.App) -> Files:
    return Files(engine=app.engine, artifacts=app.artifact_store, clock=app.clock)


async def put(store: ArtifactStore, job_id: str) -> list[str]:
    """Files of a job in two layers."""
    return [
        (await store.put(place(layer, job_id, 1, "a/b"), b"x")).path for layer in ("bronze", "gold")
    ]


async def there(store: ArtifactStore, paths: list[str]) -> list[bool]:
    """Which of these files exist."""

    async def exists(path: str) -> bool:
        try:
            await store.size(path)
        except ArtifactNotFound:
            return False
        return True

    return [await exists(path) for path in paths]


async def records(engine: Engine, kind: str = PRUNED) -> list[str]:
    return [record.key for record in await engine.record_list(kind)]


async def test_files_of_pruned_jobs_are_removed(app: headrace.App) -> None:
    pruned, other = new_id(), new_id()
    paths, others = await put(app.artifact_store, pruned), await put(app.artifact_store, other)
    await app.engine.record_put(PRUNED, pruned, b"{}")
    assert await the_loop(app).tick() > 30
    assert await there(app.artifact_store, paths) == [False, False]
    assert await there(app.artifact_store, others) == [True, True]
    assert await records(app.engine) == []


async def test_files_of_a_job_that_exists_are_left_alone(app: headrace.App) -> None:
    @app.task
    async def nothing() -> None: ...

    job = await nothing.enqueue()
    paths = await put(app.artifact_store, job.id)
    await app.engine.record_put(PRUNED, job.id, b"{}")
    await the_loop(app).tick()
    assert await there(app.artifact_store, paths) == [True, True]
    assert await records(app.engine) == []


async def test_files_of_a_job_that_comes_back_while_others_are_removed_are_left_alone(
    app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    async def noop() -> None: ...

    first, second = sorted([new_id(), new_id()])
    paths = await put(app.artifact_store, second)
    for pruned in (first, second):
        await app.engine.record_put(PRUNED, pruned, b"{}")
    remove_job = app.artifact_store.remove_job

    async def comes_back(job_id: str) -> None:
        await remove_job(job_id)
        if job_id == first:
            await app.engine.insert([NewJob(id=second, task="noop")])

    monkeypatch.setattr(app.artifact_store, "remove_job", comes_back)
    await the_loop(app).tick()
    assert await there(app.artifact_store, paths) == [True, True]


async def test_it_works_in_bounded_steps_and_with_several_at_once(
    app: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BATCH", 5)
    paths = []
    for _ in range(12):
        job_id = new_id()
        paths += await put(app.artifact_store, job_id)
        await app.engine.record_put(PRUNED, job_id, b"{}")
    one, other = the_loop(app), the_loop(app)
    assert max(await asyncio.gather(one.tick(), other.tick())) < 1
    assert 2 <= len(await records(app.engine)) <= 7
    for _ in range(3):
        await asyncio.gather(one.tick(), other.tick())
    assert await records(app.engine) == []
    assert not any(await there(app.artifact_store, paths))


async def test_whoever_is_killed_half_way_leaves_it_to_the_next(app: headrace.App) -> None:
    job_id = new_id()
    paths = await put(app.artifact_store, job_id)
    await app.engine.record_put(PRUNED, job_id, b"{}")
    # Some files are gone, the record is not: as after a kill.
    await app.artifact_store.remove(paths[0])
    await the_loop(app).tick()
    assert await there(app.artifact_store, paths) == [False, False]
    # All files are gone, the record is not.
    await app.engine.record_put(PRUNED, job_id, b"{}")
    await the_loop(app).tick()
    assert await records(app.engine) == []


async def test_a_record_that_is_no_job_leads_nowhere(app: headrace.App, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    for key in ("../..", "precious", "bronze"):
        await app.engine.record_put(PRUNED, key, b"{}")
    await the_loop(app).tick()
    assert await records(app.engine) == []
    assert (tmp_path / "precious").exists()


async def test_a_store_that_is_away_is_asked_again_later(tmp_path: Path, clock: Clock) -> None:
    url, folder = f"sqlite:///{tmp_path}/jobs.db", tmp_path / "artifacts"
    async with headrace.App(url, artifacts=str(folder), clock=clock) as app:
        app.artifact_store.pauses = (0.01,)
        job_id = new_id()
        paths = await put(app.artifact_store, job_id)
        await app.engine.record_put(PRUNED, job_id, b"{}")
        folder.rename(tmp_path / "away")
        folder.write_text("not mounted")
        loop = the_loop(app)
        with pytest.raises(EngineUnavailable):
            await loop.tick()
        assert await records(app.engine) == [job_id]
        folder.unlink()
        (tmp_path / "away").rename(folder)
        await loop.tick()
        assert await there(app.artifact_store, paths) == [False, False]


async def test_who_has_another_folder_leaves_the_record_to_others(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    job_id = new_id()
    paths = await put(open_store(tmp_path / "shared"), job_id)
    async with headrace.App(url, artifacts=str(tmp_path / "absent"), clock=clock) as laptop:
        await laptop.engine.record_put(PRUNED, job_id, b"{}")
        loop = the_loop(laptop)
        assert await loop.tick() > 30
        await loop.tick()
        assert await records(laptop.engine) == [job_id]
        assert "set HEADRACE_ARTIFACTS to where" in str(loop.refused[job_id])
        assert caplog.text.count("cannot be removed") == 1, "an old story is told once"
    async with headrace.App(url, artifacts=str(tmp_path / "shared"), clock=clock) as right:
        await the_loop(right).tick()
        assert await there(right.artifact_store, paths) == [False, False]
        assert await records(right.engine) == []


@pytest.mark.parametrize("engine", ENGINES)
async def test_from_put_to_prune_on_every_engine(
    engine: str, servers: Servers, tmp_path: Path, clock: Clock
) -> None:
    url = store_url(engine, servers, tmp_path)
    async with headrace.App(url, artifacts=str(tmp_path / "artifacts"), clock=clock) as app:

        @app.task
        async def keep(ctx: headrace.Context) -> str:
            return await ctx.artifacts.put("a", b"x")

        @app.task
        async def nothing() -> None: ...

        old = await keep.enqueue()
        await nothing.enqueue()
        await headrace.JobOrchestrator(app).run_until_idle()
        clock.advance(100)
        new = await keep.enqueue()
        await headrace.JobOrchestrator(app).run_until_idle()
        paths = [(await app.get(job.id)).result for job in (old, new)]
        await Prune(engine=app.engine, history_seconds=50, history_count=None).tick()
        assert await records(app.engine) == [old.id]
        assert await the_loop(app).remove_pruned() == 1
        assert await there(app.artifact_store, paths) == [False, True]
        assert await records(app.engine) == []
        assert await app.engine.audit() == []


async def test_handed_in_files_go_with_their_job(app: headrace.App, clock: Clock) -> None:
    @app.task
    async def ingest(file: str) -> str:
        return file

    upload = {"file": ("a.txt", b"hello")}
    async with client_of(app) as client:
        answers = [
            (await client.post("/jobs", data={"task": "ingest"}, files=upload)).json()
            for _ in range(2)
        ]
    done, waiting = (answer["job_id"] for answer in answers)
    await app.cancel(done)
    assert await records(app.engine, pending_uploads.KIND) == sorted([done, waiting])
    paths = [
        file.path
        for job_id in (done, waiting)
        for file in (await files_of(app.engine, await app.get(job_id))).values()
    ]
    loop = the_loop(app)
    clock.advance(7_200)
    await loop.tick()
    assert await there(app.artifact_store, paths) == [True, True]
    assert await app.engine.prune(older_than=3_600) == 1
    await loop.tick()
    assert await there(app.artifact_store, paths) == [False, True]
    assert await records(app.engine, pending_uploads.KIND) == [waiting]


async def test_files_whose_job_never_came_are_removed_after_a_while(
    app: headrace.App, clock: Clock
) -> None:
    job_id = new_id()
    await pending_uploads.expect(app.engine, job_id)
    paths = await put(app.artifact_store, job_id)
    loop = the_loop(app)
    await loop.tick()
    assert await there(app.artifact_store, paths) == [True, True], "the job may still come"
    clock.advance(3_700)
    await loop.tick()
    assert await there(app.artifact_store, paths) == [False, False]
    assert await records(app.engine, pending_uploads.KIND) == []


async def test_every_worker_runs_it(tmp_path: Path) -> None:
    folder = tmp_path / "artifacts"
    async with headrace.App(f"sqlite:///{tmp_path}/jobs.db", artifacts=str(folder)) as app:
        job_id = new_id()
        paths = await put(open_store(folder), job_id)
        await app.engine.record_put(PRUNED, job_id, b"{}")

        async def gone() -> bool:
            return not any(await there(app.artifact_store, paths))

        async with headrace.JobOrchestrator(app):
            await until(gone)


async def test_jobs_with_handed_in_files_are_looked_at_once_in_a_while(
    app: headrace.App, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BATCH", 5)
    jobs = [NewJob(id=new_id(), task="t", queue="q", args=b"{}", max_attempts=1) for _ in range(12)]
    for job in jobs:
        await pending_uploads.expect(app.engine, job.id)
    await app.engine.insert(jobs)
    asked: list[str] = []
    get = app.engine.get

    async def counted(ids: list[str]) -> object:
        asked.extend(ids)
        return await get(ids)

    monkeypatch.setattr(app.engine, "get", counted)
    loop = the_loop(app)
    while await loop.tick() < 30:
        pass
    assert sorted(asked) == sorted(job.id for job in jobs)
    clock.advance(60)
    assert await loop.tick() > 30
    assert len(asked) == 12
    clock.advance(files.WALK_EVERY * 1.3)
    while await loop.tick() < 30:
        pass
    assert len(asked) == 24
