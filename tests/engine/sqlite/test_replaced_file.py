"""A database file that is deleted, moved or replaced under a running program is noticed at once."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headrace.engine.base import Engine
from headrace.engine.sqlite.connection import thread
from headrace.engine.sqlite.connection.opened_file import OpenedFile, identity
from headrace.engine.sqlite.connection.thread import Transaction
from headrace.engine.sqlite.engine import SqliteEngine
from headrace.errors import EngineError, EngineUnavailable, StoreReplaced
from headrace.model.job import JobFilter
from headrace.model.worker import WorkerStats
from tests.engine.sqlite.conftest import Maker, writer_of
from tests.support.verbs import a_job, a_worker, claim, enqueue


def delete(path: Path) -> None:
    path.unlink()


def move(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replace(path: Path) -> None:
    other = path.with_name("other.db")
    shutil.copyfile(path, other)
    other.replace(path)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def delete_log(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def delete_shared_memory(path: Path) -> None:
    path.with_name(f"{path.name}-shm").unlink()


def delete_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def put(path: Path, content: bytes) -> None:
    """Another file in the place of this one."""
    other = path.with_name("other.db")
    other.write_bytes(content)
    other.replace(path)


def half_of(path: Path) -> bytes:
    """What a copy has that is under way."""
    content = path.read_bytes()
    return content[: len(content) // 2 // 4096 * 4096]


WAYS = [delete, move, replace, empty, delete_log, delete_shared_memory, delete_folder]
Way = Callable[[Path], None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """In a folder of its own, which may be deleted."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder / "jobs.db"


@pytest.fixture
async def engine(open_url: Maker, path: Path) -> SqliteEngine:
    """Without the audit in the end: the file is gone by then."""
    return await open_url(f"sqlite:///{path}")


async def until(answers: Callable[[], Awaitable[object]]) -> None:
    """Wait until this raises no `StoreReplaced` any more."""
    async with asyncio.timeout(20):
        while True:
            try:
                await answers()
            except StoreReplaced:
                await asyncio.sleep(0.05)
            else:
                return


@pytest.mark.parametrize("way", WAYS)
async def test_what_the_path_does_not_name_any_more_is_not_acknowledged(
    engine: SqliteEngine, path: Path, way: Way
) -> None:
    await enqueue(engine)
    way(path)
    with pytest.raises(StoreReplaced, match=r"jobs\.db"):
        await enqueue(engine)


@pytest.mark.parametrize("way", WAYS)
async def test_what_is_committed_while_the_file_goes_is_not_acknowledged(
    engine: SqliteEngine, path: Path, way: Way
) -> None:
    """The file goes after the transaction has begun, so only a look after the commit helps."""

    def operation(transaction: Transaction) -> str:
        transaction.connection.execute("DELETE FROM record")
        way(path)
        return "acknowledged"

    await engine.record_put("any", "thing", b"1")
    with pytest.raises(EngineError):
        await writer_of(engine).run(operation)


@pytest.mark.parametrize("way", WAYS)
async def test_it_is_noticed_though_the_folder_has_been_at_rest(
    engine: SqliteEngine, path: Path, way: Way
) -> None:
    """The log is looked at again when something in its folder has changed."""
    long_ago = 1_000_000_000_000_000_000
    os.utime(path.parent, ns=(long_ago, long_ago))
    await enqueue(engine)
    await enqueue(engine)
    way(path)
    with pytest.raises(StoreReplaced):
        await enqueue(engine)


@pytest.mark.parametrize("way", [delete, move, empty, delete_log, delete_folder])
async def test_every_verb_is_refused(engine: SqliteEngine, path: Path, way: Way) -> None:
    worker = await a_worker(engine)
    job_id = await enqueue(engine)
    await claim(engine, worker)
    keeper = engine.keeper(worker, 30.0)
    way(path)
    verbs: list[Callable[[], Awaitable[object]]] = [
        lambda: engine.get([job_id]),
        lambda: engine.list_jobs(JobFilter()),
        engine.queues,
        engine.workers,
        lambda: engine.claimed_by(worker),
        engine.audit,
        engine.report,
        lambda: engine.exchange([], worker_id=worker, limit=1),
        lambda: engine.cancel([job_id]),
        lambda: engine.promote_due(10),
        lambda: engine.record_put("kind", "key", b"1"),
        lambda: asyncio.to_thread(keeper.renew, WorkerStats()),
    ]
    for verb in verbs:
        with pytest.raises(StoreReplaced):
            await verb()


@pytest.mark.parametrize("way", [delete, move, delete_folder])
async def test_no_empty_file_is_put_in_place_of_a_lost_one(
    engine: SqliteEngine, path: Path, way: Way
) -> None:
    way(path)
    for _ in range(3):
        with pytest.raises(StoreReplaced, match="put it back"):
            await enqueue(engine)
    assert identity(str(path)) is None


@pytest.mark.parametrize("way", WAYS)
async def test_an_idle_listener_is_woken_within_a_second(
    engine: SqliteEngine, path: Path, way: Way
) -> None:
    heard = asyncio.Event()
    end = await engine.listen(heard.set, lambda _: None)
    await engine.record_put("any", "thing", b"1")  # what follows is not the wake-up of `listen`
    heard.clear()
    way(path)
    await asyncio.wait_for(heard.wait(), 1.0)
    end()


async def test_a_file_that_comes_back_is_used_again(engine: SqliteEngine, path: Path) -> None:
    before = await enqueue(engine)
    move(path)
    with pytest.raises(StoreReplaced):
        await enqueue(engine)
    path.with_name("elsewhere.db").rename(path)
    await until(engine.queues)
    after = await enqueue(engine)
    assert {job.id for job in await engine.get([before, after])} == {before, after}
    assert await engine.audit() == []


async def test_a_restored_backup_is_opened_in_its_place(
    engine: SqliteEngine, path: Path, open_url: Maker
) -> None:
    kept = await enqueue(engine)
    backup = path.with_name("backup.db")
    with sqlite3.connect(path) as live, sqlite3.connect(backup) as copy:
        live.backup(copy)
    live.close()
    copy.close()
    lost = await enqueue(engine)
    backup.replace(path)
    with pytest.raises(StoreReplaced, match="replaced"):
        await enqueue(engine)
    await until(engine.queues)
    await until(lambda: engine.record_put("any", "thing", b"1"))
    after = await enqueue(engine)
    another = await open_url(f"sqlite:///{path}")
    assert {job.id for job in await another.get([kept, lost, after])} == {kept, after}
    assert await engine.audit() == await another.audit() == []


async def test_a_replacement_is_not_opened_while_it_may_still_be_copied(
    engine: SqliteEngine, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread, "STEADY_SECONDS", 3_600.0)
    replace(path)
    for _ in range(3):
        with pytest.raises(StoreReplaced):
            await enqueue(engine)


@pytest.mark.parametrize("content", [b"not a database" * 1_000, None])
async def test_a_replacement_that_cannot_be_used_is_named_and_left_alone(
    engine: SqliteEngine, path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    monkeypatch.setattr(thread, "STEADY_SECONDS", 0.0)
    if content is None:
        await engine.insert([a_job() for _ in range(500)])
        await engine.close()
        await engine.open()
        content = half_of(path)
    put(path, content)
    with pytest.raises(StoreReplaced):
        await enqueue(engine)
    with pytest.raises(StoreReplaced, match="cannot be used"):
        await enqueue(engine)
    assert half_of(path) == content[: len(content) // 2 // 4096 * 4096]


async def test_whoever_leaves_a_replaced_file_does_not_touch_the_new_one(
    engine: SqliteEngine, path: Path, open_url: Maker
) -> None:
    """SQLite deletes the log of whom it believes to be the last, by its name."""
    await enqueue(engine)
    delete(path)
    for rest in path.parent.iterdir():
        rest.unlink()
    successor = await open_url(f"sqlite:///{path}")
    await enqueue(successor)
    files = {each.name: each.stat().st_ino for each in path.parent.iterdir()}
    await engine.close()
    assert {each.name: each.stat().st_ino for each in path.parent.iterdir()} == files
    await enqueue(successor)
    assert await successor.audit() == []


async def test_what_was_acknowledged_survives_the_loss_of_the_log(
    engine: SqliteEngine, path: Path
) -> None:
    """Until the log is written to the file it is the only copy, and it has no name any more."""
    ids = [await enqueue(engine) for _ in range(10)]
    delete_log(path)
    with pytest.raises(StoreReplaced, match="start every program"):
        await enqueue(engine)
    copy = path.with_name("as-after-a-power-cut.db")
    shutil.copyfile(path, copy)
    behind = sqlite3.connect(copy)
    found = {row[0] for row in behind.execute("SELECT id FROM job")}
    behind.close()
    assert found >= set(ids)


async def test_a_file_that_was_moved_has_all_that_was_acknowledged_when_another_takes_its_place(
    engine: SqliteEngine, path: Path
) -> None:
    """Its log is left behind under the old name, where SQLite would take it for the new file's."""
    ids = [await enqueue(engine) for _ in range(10)]
    move(path)
    put(path, b"another file")
    with pytest.raises(StoreReplaced):
        await enqueue(engine)
    assert [each.name for each in path.parent.glob("jobs.db-*")] == []
    behind = sqlite3.connect(path.with_name("elsewhere.db"))
    found = {row[0] for row in behind.execute("SELECT id FROM job")}
    behind.close()
    assert found >= set(ids)


async def test_a_program_may_change_its_folder(
    path: Path, open_url: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    engine: Engine = await open_url("sqlite:///jobs.db")
    await enqueue(engine)
    monkeypatch.chdir("/")
    await enqueue(engine)


async def test_a_replaced_file_is_opened_though_the_program_has_changed_its_folder(
    path: Path, open_url: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread, "STEADY_SECONDS", 0.0)
    monkeypatch.chdir(path.parent)
    engine = await open_url("sqlite:///jobs.db")
    monkeypatch.chdir("/")
    replace(path)
    await until(lambda: enqueue(engine))


async def test_a_link_that_leads_elsewhere_leaves_the_file_to_others(
    path: Path, open_url: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread, "STEADY_SECONDS", 0.0)
    link, other = path.with_name("link.db"), path.with_name("other.db")
    link.symlink_to(path)
    by_link, by_name = await open_url(f"sqlite:///{link}"), await open_url(f"sqlite:///{path}")
    elsewhere = await open_url(f"sqlite:///{other}")
    link.unlink()
    link.symlink_to(other)
    await until(by_link.queues)
    await until(lambda: by_link.record_put("any", "thing", b"1"))
    await enqueue(by_link, queue="moved")
    await enqueue(by_name, queue="stayed")
    assert [queue.name for queue in await by_name.queues()] == ["stayed"]
    assert [queue.name for queue in await elsewhere.queues()] == ["moved"]


async def test_a_folder_that_may_not_be_looked_into_is_an_outage(
    engine: SqliteEngine, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root may look everywhere, the refusal is made here."""
    allowed = os.stat

    def refuse(name: object, **options: object) -> os.stat_result:
        if str(name).startswith(str(path)):
            raise PermissionError(13, "Permission denied", str(name))
        return allowed(name, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", refuse)
        with pytest.raises(EngineUnavailable, match="cannot be looked at"):
            await enqueue(engine)
    await enqueue(engine)


@pytest.mark.parametrize("error", [PermissionError(13, "no"), sqlite3.OperationalError("no")])
async def test_the_writer_outlives_a_replacement_that_cannot_be_opened_while_it_listens(
    engine: SqliteEngine, path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The refusal is made here: it comes at the moment in which the new file is opened."""
    tried = threading.Event()

    def refuse(self: OpenedFile, *_: object) -> None:
        tried.set()
        raise error

    monkeypatch.setattr(thread, "STEADY_SECONDS", 0.0)
    await engine.listen(lambda: None, lambda job_id: None)
    with monkeypatch.context() as patch:
        patch.setattr(OpenedFile, "__init__", refuse)
        replace(path)
        assert await asyncio.to_thread(tried.wait, 10)
        with pytest.raises(StoreReplaced):
            await asyncio.wait_for(enqueue(engine), 60)
    await until(lambda: enqueue(engine))


async def test_a_link_to_the_file_may_be_used(path: Path, open_url: Maker) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    engine = await open_url(f"sqlite:///{link}")
    await enqueue(engine)
    link.unlink()
    with pytest.raises(StoreReplaced):
        await enqueue(engine)
