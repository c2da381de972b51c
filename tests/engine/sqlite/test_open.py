"""Opening: files that cannot be used are named with the remedy, and openers do not collide."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headrace.clock import Clock
from headrace.engine.sqlite.connection import opening as connections
from headrace.engine.sqlite.connection.address import SqliteAddress
from headrace.engine.sqlite.connection.migrate import NEWEST
from headrace.engine.sqlite.connection.opening import translated
from headrace.engine.sqlite.connection.thread import ConnectionThread, ReaderThread
from headrace.engine.sqlite.connection.writer import WriterThread
from headrace.engine.sqlite.engine import SqliteEngine
from headrace.errors import EngineError, EngineUnavailable, SchemaTooNew
from tests.engine.sqlite.conftest import Maker
from tests.support.verbs import a_job, a_worker, claim, complete, enqueue, the_job

OPENER = """
import asyncio, sys
from headrace.clock import Clock
from headrace.engine.sqlite.engine import SqliteEngine
from headrace.model.ids import new_id
from headrace.model.job import NewJob

async def main():
    engine = SqliteEngine(sys.argv[1], clock=Clock())
    await engine.open()
    for _ in range(20):
        await engine.insert([NewJob(id=new_id(), task="t", lane="l")])
    await engine.close()

asyncio.run(main())
"""


LINUX = sys.platform == "linux"

HOLDER = """
import sqlite3, sys, time

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(60)
"""


def read(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


async def test_a_missing_folder_is_named(tmp_path: Path, open_url: Maker) -> None:
    with pytest.raises(EngineError, match=r"nowhere.* does not exist"):
        await open_url(f"sqlite:///{tmp_path}/nowhere/jobs.db")


async def test_a_folder_is_not_a_database(tmp_path: Path, open_url: Maker) -> None:
    with pytest.raises(EngineError, match="is a folder"):
        await open_url(f"sqlite:///{tmp_path}")


async def test_a_file_that_is_no_database_is_left_alone(path: Path, open_url: Maker) -> None:
    text = b"this is not a database, but a text of some length\n" * 100
    write(path, text)
    with pytest.raises(EngineError, match=r"jobs\.db.*not a SQLite database"):
        await open_url(f"sqlite:///{path}")
    assert read(path) == text


async def test_a_damaged_database_is_reported(path: Path, open_url: Maker) -> None:
    engine = await open_url(f"sqlite:///{path}")
    await engine.insert([a_job() for _ in range(500)])
    await engine.close()
    sound = read(path)
    write(path, sound[:4096] + b"\xff" * (len(sound) - 4096))
    with pytest.raises(EngineError, match=r"jobs\.db.*(damaged|not a SQLite database)"):
        await (await open_url(f"sqlite:///{path}")).insert([a_job()])


async def test_another_programs_database_is_left_alone(path: Path, open_url: Maker) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE invoice (id INTEGER)")
    other.close()
    with pytest.raises(EngineError, match="another program"):
        await open_url(f"sqlite:///{path}")
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("invoice",)]
    other.close()


async def test_a_newer_schema_is_refused_with_both_versions(path: Path, open_url: Maker) -> None:
    await (await open_url(f"sqlite:///{path}")).close()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 999")
    other.close()
    with pytest.raises(SchemaTooNew, match=rf"version 999.*up to {NEWEST}\. Upgrade"):
        await open_url(f"sqlite:///{path}")


async def test_a_file_that_cannot_be_written_is_reported(path: Path) -> None:
    sqlite3.connect(path).execute("CREATE TABLE a (b)").connection.close()
    reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    with pytest.raises(sqlite3.OperationalError) as caught:
        reader.execute("CREATE TABLE c (d)")
    reader.close()
    error = translated(caught.value, SqliteAddress(path))
    assert isinstance(error, EngineError)
    assert "cannot be written" in str(error)
    assert error.__cause__ is caught.value


async def test_a_locked_file_is_unavailable_and_works_again(
    sqlite_engine: SqliteEngine,
    behind: sqlite3.Connection,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    open_url: Maker,
) -> None:
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.1)
    hasty = await open_url(f"sqlite:///{path}")
    behind.execute("BEGIN IMMEDIATE")
    with pytest.raises(EngineUnavailable, match="locked for"):
        await enqueue(hasty)
    behind.execute("ROLLBACK")
    job_id = await enqueue(hasty)
    assert (await the_job(hasty, job_id)).id == job_id


async def test_a_process_that_is_stopped_while_it_writes_is_named(
    sqlite_engine: SqliteEngine, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can take the lock from it, so the least is to say who it is."""
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.1)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, str(path), stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 30) == b"locked\n"
        process.send_signal(signal.SIGSTOP)
        who = f"process {process.pid}" if LINUX else "another process"
        with pytest.raises(EngineUnavailable, match=f"{who} kept it locked"):
            await enqueue(sqlite_engine)
        # What people see goes on meanwhile.
        assert await sqlite_engine.queues() == []
    finally:
        process.kill()
        await process.wait()
    await enqueue(sqlite_engine)


async def test_an_old_library_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(EngineError, match=r"needs 3\.35\.0 or newer"):
        await SqliteEngine(f"sqlite:///{path}", clock=Clock()).open()


async def test_real_processes_open_a_new_file_at_once(path: Path, open_url: Maker) -> None:
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", OPENER, f"sqlite:///{path}", stderr=subprocess.PIPE
        )
        for _ in range(5)
    ]
    for process in processes:
        _, errors = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 0, errors.decode()
    engine = await open_url(f"sqlite:///{path}")
    [queue] = await engine.queues()
    assert (queue.ready, queue.waiting) == (1, 99)
    assert await engine.audit() == []


async def test_a_database_in_memory_does_everything(open_url: Maker) -> None:
    engine = await open_url("sqlite://")
    stranger = await open_url("sqlite:///:memory:")
    worker = await a_worker(engine)
    job_id = await enqueue(engine, lane="l")
    [job] = await claim(engine, worker)
    assert await complete(engine, job)
    assert (await the_job(engine, job_id)).result is None
    assert await stranger.get([job_id]) == []
    assert await engine.audit() == []


async def test_a_relative_path_is_relative_to_where_the_process_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_url: Maker
) -> None:
    monkeypatch.chdir(tmp_path)
    await open_url("sqlite:///here.db")
    assert (tmp_path / "here.db").exists()


async def test_a_closed_engine_says_so_and_can_be_opened_again(path: Path, open_url: Maker) -> None:
    engine = await open_url(f"sqlite:///{path}")
    job_id = await enqueue(engine)
    await engine.close()
    for verb in (enqueue(engine), engine.queues(), engine.listen(lambda: None, lambda _: None)):
        with pytest.raises(EngineUnavailable, match="open"):
            await verb
    await engine.open()
    assert (await the_job(engine, job_id)).id == job_id


async def test_what_was_accepted_is_finished_before_closing(path: Path, open_url: Maker) -> None:
    engine = await open_url(f"sqlite:///{path}")
    inserts = [asyncio.ensure_future(enqueue(engine)) for _ in range(50)]
    await asyncio.sleep(0)
    await engine.close()
    ids = await asyncio.gather(*inserts)
    again = await open_url(f"sqlite:///{path}")
    assert len(await again.get(ids)) == 50


@pytest.mark.parametrize("level", ["normal", "off"])
async def test_the_report_warns_of_weak_durability(path: Path, open_url: Maker, level: str) -> None:
    engine = await open_url(f"sqlite:///{path}?synchronous={level}")
    [warning] = [each for each in (await engine.report()).findings if each.level == "warning"]
    assert f"synchronous is {level}" in warning.detail
    assert warning.remedy


async def test_the_report_of_a_file_has_nothing_to_warn_of(sqlite_engine: SqliteEngine) -> None:
    report = await sqlite_engine.report()
    assert report.server_version == sqlite3.sqlite_version
    assert {each.subject for each in report.findings} >= {"journal", "durability", "size", "disk"}
    assert [each for each in report.findings if each.level == "error"] == []


async def test_the_report_of_memory_warns(open_url: Maker) -> None:
    findings = (await (await open_url("sqlite://")).report()).findings
    assert any("in memory" in each.detail for each in findings if each.level == "warning")


@pytest.mark.parametrize("which", [WriterThread, ReaderThread])
async def test_opening_that_is_cancelled_leaves_no_thread_behind(
    path: Path, monkeypatch: pytest.MonkeyPatch, which: type[ConnectionThread]
) -> None:
    began, go = threading.Event(), threading.Event()
    opened: list[sqlite3.Connection] = []
    threads: list[threading.Thread] = []
    failed: list[object] = []
    prepare = which._prepare

    def slowly(self: ConnectionThread, connection: sqlite3.Connection) -> None:
        opened.append(connection)
        threads.append(self._thread)
        began.set()
        go.wait(10)
        prepare(self, connection)

    monkeypatch.setattr(which, "_prepare", slowly)
    monkeypatch.setattr(threading, "excepthook", failed.append)
    engine = SqliteEngine(f"sqlite:///{path}", clock=Clock())
    opening = asyncio.ensure_future(engine.open())
    assert await asyncio.to_thread(began.wait, 10)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    go.set()
    await asyncio.to_thread(threads[0].join, 10)
    assert not threads[0].is_alive()
    assert failed == []
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].total_changes  # noqa: B018 - raises
    await engine.open()
    await engine.close()
