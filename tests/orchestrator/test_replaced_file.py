"""A worker whose SQLite file is deleted says so, and goes on with the file that is put in place."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import headrace
from headrace.errors import StoreReplaced
from tests.orchestrator.conftest import Worker, until


async def test_an_idle_worker_notices_a_deleted_file_and_goes_on_with_a_restored_one(
    tmp_path: Path,
    worker: Worker,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from headrace.loops import loop

    monkeypatch.setattr(loop, "backoff", lambda failures: 0.1)
    path, backup = tmp_path / "jobs.db", tmp_path / "backup.db"
    files = str(tmp_path / "files")
    async with headrace.App(f"sqlite:///{path}", artifacts=files, lease_seconds=3) as app:

        @app.task
        async def add(a: int, b: int) -> int:
            return a + b

        kept = await add.enqueue(1, 2)
        with sqlite3.connect(path) as live, sqlite3.connect(backup) as copy:
            live.backup(copy)
        live.close()
        copy.close()
        orchestrator = worker(app, name="ada")
        await orchestrator.start()
        assert await app.result(kept.id, timeout=20) == 3
        path.unlink()
        await until(lambda: "StoreReplaced" in caplog.text)
        assert "was deleted or moved; put it back" in caplog.text
        with pytest.raises(StoreReplaced):
            await add.enqueue(3, 4)
        backup.rename(path)
        await until(lambda: "going on with the new file" in caplog.text)

        async def done() -> bool:
            try:
                [job] = await app.engine.get([kept.id])
            except StoreReplaced:
                return False
            return job.status is headrace.Status.COMPLETED and orchestrator.healthy

        await until(done)
        assert await app.result((await add.enqueue(5, 6)).id, timeout=20) == 11
        assert orchestrator.worker_name == "ada"  # nobody else has taken it
        await orchestrator.stop(grace=0)
        assert await app.engine.audit() == []
