"""Kept files outlive their job until the last owner releases them, whoever races with whom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.artifacts import kept_files, pending_uploads
from headrace.artifacts.kept_files import KIND
from headrace.clock import Clock
from headrace.errors import ArtifactNotFound, LeaseLost
from headrace.upkeep import Files
from headrace.upkeep.files import PRUNED
from tests.conftest import ENGINES, Servers, store_url


@pytest.fixture
def clock() -> Clock:
    return Clock()


def tasks(app: headrace.App) -> None:
    @app.task
    async def write(ctx: headrace.Context) -> list[str]:
        return [
            await ctx.artifacts.put(name, name.encode(), layer="gold")
            for name in ("a.txt", "deep/b.txt", "deep/c.txt")
        ]

    @app.task
    async def keeping(ctx: headrace.Context) -> str:
        path = await ctx.artifacts.put("a.txt", b"hello", layer="gold")
        file = await ctx.artifacts.keep("a.txt", layer="gold", owner="shop", reason="row 7")
        assert (file.path, file.size, file.name) == (path, 5, "a.txt")
        with pytest.raises(ArtifactNotFound):
            await ctx.artifacts.keep("nothing", owner="shop")
        return path


@pytest.fixture(params=ENGINES)
async def app(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path, clock: Clock
) -> AsyncIterator[headrace.App]:
    url = store_url(request.param, servers, tmp_path)
    async with headrace.App(url, clock=clock, artifacts=str(tmp_path / "artifacts")) as app:
        tasks(app)
        yield app


@pytest.fixture
async def local(setting: str, tmp_path: Path, clock: Clock) -> AsyncIterator[headrace.App]:
    """On SQLite over each kind of store."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with headrace.App(url, clock=clock, artifacts=setting) as app:
        tasks(app)
        yield app


async def files_of_a_job(app: headrace.App) -> list[str]:
    job = await app.enqueue("write")
    await headrace.JobOrchestrator(app).run_until_idle()
    paths: list[str] = await app.result(job.id, timeout=20)
    return paths


async def prune(app: headrace.App) -> None:
    app.clock.advance(10)
    await app.engine.prune(older_than=1, keep=None, limit=100)
    await the_loop(app).tick()


def the_loop(app: headrace.App) -> Files:
    return Files(engine=app.engine, artifacts=app.artifact_store, clock=app.clock)


async def there(app: headrace.App, *paths: str) -> list[bool]:
    found = []
    for path in paths:
        try:
            await app.artifacts.get(path)
            found.append(True)
        except ArtifactNotFound:
            found.append(False)
    return found


async def records(app: headrace.App) -> list[str]:
    return [record.key for record in await app.engine.record_list(KIND)]


async def keep_prune_and_release(app: headrace.App) -> None:
    paths = await files_of_a_job(app)
    file = await app.artifacts.keep(paths[1], owner="shop", reason="row 7")
    assert (file.path, file.owner, file.reason, file.size) == (paths[1], "shop", "row 7", 10)
    await app.artifacts.keep(paths[1], owner="lake")
    await prune(app)
    assert await there(app, *paths) == [False, True, False]
    assert await app.engine.record_list(PRUNED) == []
    assert await app.artifacts.release(paths[1], owner="shop")
    assert not await app.artifacts.release(paths[1], owner="shop")
    assert await there(app, paths[1]) == [True]
    with pytest.raises(headrace.JobConflict, match="is kept"):
        await app.artifacts.remove(paths[1])
    assert await app.artifacts.release(paths[1], owner="lake")
    assert await there(app, paths[1]) == [False]
    assert await records(app) == []


async def test_a_kept_file_outlives_its_job_until_the_last_owner_releases_it(
    app: headrace.App,
) -> None:
    await keep_prune_and_release(app)


async def test_files_are_kept_in_each_kind_of_store(local: headrace.App) -> None:
    await keep_prune_and_release(local)


async def test_more_kept_files_than_a_page_of_the_store_are_spared(
    local: headrace.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.artifacts.s3.PAGE", 2)

    @local.task
    async def many(ctx: headrace.Context) -> list[str]:
        return [await ctx.artifacts.put(f"{n}.txt", b"x") for n in range(9)]

    job = await many.enqueue()
    await headrace.JobOrchestrator(local).run_until_idle()
    paths = await local.result(job.id, timeout=20)
    for path in paths[:5]:
        await local.artifacts.keep(path, owner="shop")
    await prune(local)
    assert await there(local, *paths) == [True] * 5 + [False] * 4


async def test_a_handler_keeps_a_file(app: headrace.App) -> None:
    job = await app.enqueue("keeping")
    await headrace.JobOrchestrator(app).run_until_idle()
    path = await app.result(job.id, timeout=20)
    await prune(app)
    assert await there(app, path) == [True]
    [file] = (await app.artifacts.kept("shop")).files
    assert (file.path, file.reason, file.job_id) == (path, "row 7", job.id)


async def test_an_attempt_that_lost_its_lease_keeps_nothing(app: headrace.App) -> None:
    refused: list[str] = []

    @app.task(retries=0)
    async def stale(ctx: headrace.Context) -> None:
        await ctx.artifacts.put("a.txt", b"hello")

        async def lost(**_: Any) -> None:
            raise LeaseLost("it belongs to another")

        ctx.write = lost  # type: ignore[attr-defined]
        try:
            await ctx.artifacts.keep("a.txt", owner="shop")
        except LeaseLost as error:
            refused.append(str(error))

    await stale.enqueue()
    await headrace.JobOrchestrator(app).run_until_idle()
    assert refused == ["it belongs to another"]
    assert await records(app) == []


async def test_released_while_its_job_exists_a_file_goes_with_the_job(app: headrace.App) -> None:
    paths = await files_of_a_job(app)
    await app.artifacts.keep(paths[0], owner="shop")
    await app.artifacts.release(paths[0], owner="shop")
    assert await there(app, *paths) == [True] * 3
    await prune(app)
    assert await there(app, *paths) == [False] * 3


async def test_what_does_not_exist_cannot_be_kept(app: headrace.App) -> None:
    paths = await files_of_a_job(app)
    for path in (paths[0].replace("a.txt", "nothing"), paths[0].replace("gold", "silver")):
        with pytest.raises(ArtifactNotFound):
            await app.artifacts.keep(path, owner="shop")
    await app.artifact_store.remove(paths[2])
    with pytest.raises(ArtifactNotFound):
        await app.artifacts.keep(paths[2], owner="shop")
    await prune(app)
    with pytest.raises(ArtifactNotFound):
        await app.artifacts.keep(paths[0], owner="shop")
    with pytest.raises(headrace.InvalidName):
        await app.artifacts.keep("../../etc/passwd", owner="shop")
    with pytest.raises(headrace.InvalidName):
        await app.artifacts.keep(paths[0], owner="a/b")
    assert await records(app) == []


async def test_a_file_that_was_replaced_stays_if_it_is_kept(app: headrace.App) -> None:
    @app.task
    async def replacing(ctx: headrace.Context) -> list[str]:
        first = await ctx.artifacts.put("state", b"1")
        await ctx.artifacts.keep("state", owner="shop")
        second = await ctx.artifacts.put("state", b"2")
        third = await ctx.artifacts.put("state", b"3")
        return [first, second, third]

    job = await replacing.enqueue()
    await headrace.JobOrchestrator(app).run_until_idle()
    paths = await app.result(job.id, timeout=20)
    assert await there(app, *paths) == [True, False, True]
    # As if the replaced one was about to be removed: it is not a file of the job any more.
    await app.artifact_store.put(paths[1], b"2")
    with pytest.raises(ArtifactNotFound, match="has replaced it"):
        await app.artifacts.keep(paths[1], owner="shop")
    await prune(app)
    assert await there(app, *paths) == [True, False, False]


async def test_an_upload_without_a_job_can_be_kept(app: headrace.App) -> None:
    one, other = [await app.artifacts.put(name, b"x") for name in ("a.txt", "b.txt")]
    await app.artifacts.keep(one.path, owner="shop")
    app.clock.advance(3_700)
    await the_loop(app).tick()
    assert await there(app, one.path, other.path) == [True, False]
    assert await app.engine.record_list(pending_uploads.KIND) == []
    await app.artifacts.release(one.path, owner="shop")
    assert await there(app, one.path) == [False]


async def test_kept_files_are_listed_in_pages(app: headrace.App, monkeypatch: Any) -> None:
    monkeypatch.setattr(kept_files, "PAGE", 2)
    paths = await files_of_a_job(app)
    for path in paths:
        for owner in ("lake", "shop"):
            await app.artifacts.keep(path, owner=owner)
    wanted: list[tuple[str | None, list[str]]]
    wanted = [("shop", paths), (None, paths * 2), ("nobody", [])]
    for whose, expected in wanted:
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = await app.artifacts.kept(whose, cursor=cursor, limit=2)
            assert len(page.files) <= 2
            found += [file.path for file in page.files]
            cursor = page.cursor
            if cursor is None:
                break
        assert sorted(found) == sorted(expected)


# -- races ---------------------------------------------------------------------------------------

Step = Callable[[], Awaitable[Any]]


class Pausing:
    """An engine that does something else before one of its verbs, once."""

    def __init__(self, engine: Any, verb: str, before: Step, *, kind: str | None = None) -> None:
        self._engine, self._verb, self._before, self._kind = engine, verb, before, kind

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._engine, name)
        if name != self._verb:
            return verb

        async def paused(*args: Any, **options: Any) -> Any:
            if self._verb and (self._kind is None or args[0] == self._kind):
                self._verb = ""
                await self._before()
            return await verb(*args, **options)

        return paused


@pytest.mark.parametrize("verb", ["record_put", "get", "entries", "record_get"])
async def test_a_prune_while_a_file_is_being_kept(app: headrace.App, verb: str) -> None:
    """Wherever the prune comes in: acknowledged means there, refused means no record."""
    paths = await files_of_a_job(app)
    engine: Any = Pausing(app.engine, verb, lambda: prune(app))
    try:
        await kept_files.keep(engine, app.artifact_store, paths[0], owner="shop")
        assert await there(app, paths[0]) == [True]
    except ArtifactNotFound:
        assert await there(app, paths[0]) == [False]
        assert await records(app) == []


@pytest.mark.parametrize("verb", ["record_list", "record_delete", "record_put"])
@pytest.mark.parametrize("upload", [False, True])
async def test_a_keep_while_files_are_being_removed(
    app: headrace.App, verb: str, upload: bool
) -> None:
    """The other way round: a keep wherever upkeep is."""
    if upload:
        path = (await app.artifacts.put("a.txt", b"x")).path
        app.clock.advance(3_700)
    else:
        path = (await files_of_a_job(app))[0]
        app.clock.advance(10)
    acknowledged: list[bool] = []

    async def keep() -> None:
        try:
            await app.artifacts.keep(path, owner="shop")
            acknowledged.append(True)
        except ArtifactNotFound:
            acknowledged.append(False)

    if not upload:
        await app.engine.prune(older_than=1, keep=None, limit=100)
    for kind in (KIND, PRUNED, pending_uploads.KIND):
        engine: Any = Pausing(app.engine, verb, keep, kind=kind)
        await Files(engine=engine, artifacts=app.artifact_store, clock=app.clock).tick()
    if not acknowledged:
        await keep()
    assert await there(app, path) == [any(acknowledged)]
    assert bool(await records(app)) == any(acknowledged)


@pytest.mark.parametrize("verb", ["record_delete", "record_list", "get"])
async def test_two_keep_what_the_last_owner_releases(app: headrace.App, verb: str) -> None:
    """Neither may take the other, which is not acknowledged yet, for a reason to go on."""
    path = (await files_of_a_job(app))[0]
    await app.artifacts.keep(path, owner="first")
    await prune(app)
    acknowledged: list[str] = []

    async def keep(owner: str) -> None:
        try:
            await app.artifacts.keep(path, owner=owner)
            acknowledged.append(owner)
        except ArtifactNotFound:
            pass

    async def both() -> None:
        await asyncio.gather(keep("second"), keep("third"))

    engine: Any = Pausing(app.engine, verb, both)
    await kept_files.release(engine, app.artifact_store, path, owner="first")
    assert await there(app, path) == [bool(acknowledged)]
    assert len(await records(app)) == len(acknowledged)


async def test_keeps_that_vouch_for_each_other_are_refused(app: headrace.App) -> None:
    """One is written, another checks, and neither is acknowledged."""
    path = (await files_of_a_job(app))[0]
    await app.artifacts.keep(path, owner="first")
    await prune(app)
    unconfirmed = kept_files.KeptRecord(path, "second")
    await app.engine.record_put(
        KIND, kept_files._key(path, "second"), kept_files._encode(unconfirmed)
    )
    await app.engine.record_delete(KIND, kept_files._key(path, "first"))
    with pytest.raises(ArtifactNotFound):
        await app.artifacts.keep(path, owner="third")
    # The one that was killed half-way still holds the file: it is listed, and can be released.
    assert await there(app, path) == [True]
    await app.artifacts.release(path, owner="second")
    assert await there(app, path) == [False]


async def test_many_race(app: headrace.App) -> None:
    for _ in range(5):
        paths = await files_of_a_job(app)
        app.clock.advance(10)
        acknowledged: set[str] = set()

        async def keep(path: str, done: set[str]) -> None:
            for owner in ("a", "b", "c"):
                try:
                    await app.artifacts.keep(path, owner=owner)
                    done.add(path)
                except ArtifactNotFound:
                    return

        async def upkeep() -> None:
            await app.engine.prune(older_than=1, keep=None, limit=100)
            await asyncio.gather(the_loop(app).tick(), the_loop(app).tick())

        await asyncio.gather(*(keep(path, acknowledged) for path in paths), upkeep())
        await the_loop(app).tick()
        assert await there(app, *paths) == [path in acknowledged for path in paths]
        for path in acknowledged:
            for owner in ("a", "b", "c"):
                await app.artifacts.release(path, owner=owner)
        assert await there(app, *paths) == [False] * 3
    assert await records(app) == []


@pytest.mark.parametrize("verb", ["record_get", "record_put"])
async def test_kept_again_while_its_only_owner_releases_it_is_refused(
    app: headrace.App, verb: str
) -> None:
    """What was read of the record before must not bring it back."""
    path = (await files_of_a_job(app))[0]
    await app.artifacts.keep(path, owner="shop")
    await prune(app)

    async def release() -> None:
        await app.artifacts.release(path, owner="shop")

    engine: Any = Pausing(app.engine, verb, release)
    with pytest.raises(ArtifactNotFound):
        await kept_files.keep(engine, app.artifact_store, path, owner="shop")
    assert await there(app, path) == [False]
    assert await records(app) == []
