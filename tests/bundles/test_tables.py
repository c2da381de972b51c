"""Tables of bundles: where they are, migrated once by many, checked, closed."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest
import sqlalchemy as sa

import headrace
import headrace.bundles
from headrace.bundles.migrations import _alone
from headrace.bundles.tables import find_address
from tests.conftest import Servers, store_url

pytestmark = pytest.mark.usefixtures("forget")

OPEN = """
import asyncio, sys, headrace
async def main():
    async with headrace.App(sys.argv[1], bundles=["shelf"]) as app:
        failed = [each.reason for each in app.bundles.failures]
        assert not failed, failed
        await app.bundles.find("shelf").setup.migrate()
asyncio.run(main())
"""


def setup_of(app: headrace.App) -> headrace.bundles.Setup:
    loaded = app.bundles.find("shelf")
    assert loaded is not None
    return loaded.setup


@pytest.mark.parametrize(
    ("given", "engine", "url", "schema"),
    [
        (None, "postgresql://u@h/d", "postgresql://u@h/d", "headrace_shelf"),
        (None, "postgresql://u@h/d?schema=jobs", "postgresql://u@h/d", "jobs_shelf"),
        ("postgresql://h/e", "sqlite:////a/b.db", "postgresql://h/e", "headrace_shelf"),
        ("postgresql://h/e?schema=mine", "redis://h", "postgresql://h/e", "mine"),
        (None, "sqlite:////a/jobs.db", "sqlite:////a/jobs-shelf.db", None),
        ("sqlite:////a/x.db", "sqlite:////a/jobs.db", "sqlite:////a/x.db", None),
        (None, "sqlite:///:memory:", "sqlite:///:memory:", None),
    ],
)
def test_where_tables_are(given: str | None, engine: str, url: str, schema: str | None) -> None:
    found = find_address("shelf", given, engine)
    assert (found.url, found.schema) == (url, schema)


def test_tables_of_a_redis_engine_are_in_a_file_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_address("shelf", None, "redis://h").path == tmp_path / "headrace-shelf.db"


def test_an_address_shows_no_password() -> None:
    found = find_address("shelf", None, "postgresql://u:hush@h/d")
    assert "hush" not in f"{found} {found!r}"


def test_a_bad_address_is_refused(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_SHELF_URL", "mysql://u:hush@h/d")
    app = headrace.App("sqlite:///:memory:", bundles=["shelf"])
    (failure,) = app.bundles.failures
    assert "HEADRACE_SHELF_URL has the unknown form" in failure.reason
    assert "hush" not in failure.reason


async def test_tables_are_there_when_the_app_is_open(
    shelf: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with headrace.App(url, bundles=["shelf"]) as app:
        setup = setup_of(app)
        assert not app.bundles.failures
        state = await setup.tables_state()
        assert state is not None
        assert (state.version, state.pending) == ("0002", ())
        assert await setup.migrate() == []
        job = await app.enqueue("shelf.add", {"title": "Emma"})
        await headrace.JobOrchestrator(app).run_until_idle()
        async with setup.engine().connect() as connection:
            rows = (await connection.execute(sa.text("SELECT id, title FROM books"))).all()
        assert [tuple(row) for row in rows] == [(job.id, "Emma")]
        assert setup.engine() is setup.engine()


async def test_few_connections_are_opened(shelf: Path, servers: Servers, tmp_path: Path) -> None:
    url = store_url("postgres", servers, tmp_path)
    async with headrace.App(url, bundles=["shelf"]) as app:
        setup = setup_of(app)

        async def ask() -> int:
            async with setup.engine().connect() as connection:
                found = await connection.execute(
                    sa.text(
                        "SELECT count(*), pg_sleep(0.02) FROM pg_stat_activity "
                        "WHERE application_name = :name"
                    ),
                    {"name": setup.tables_address.schema},
                )
                return int(found.scalar_one())

        counts = await asyncio.gather(*(ask() for _ in range(40)))
        assert 1 <= max(counts) <= 4
    engine = sa.create_engine(setup.tables_url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        left = connection.execute(
            sa.text("SELECT count(*) FROM pg_stat_activity WHERE application_name = :name"),
            {"name": setup.tables_address.schema},
        ).scalar_one()
    engine.dispose()
    assert left == 0


@pytest.mark.parametrize("name", ["sqlite", "postgres"])
async def test_nobody_migrates_beside_another(
    shelf: Path, name: str, servers: Servers, tmp_path: Path
) -> None:
    async with headrace.App(store_url(name, servers, tmp_path), bundles=["shelf"]) as app:
        setup = setup_of(app)
        address = setup.tables_address
        async with _alone(setup.engine(), address, "shelf") as connection:
            if address.path is not None:
                # Rows of a table that is made anew must not be deleted with the old one.
                keys = await connection.exec_driver_sql("PRAGMA foreign_keys")
                assert keys.scalar_one() == 0
                other = sqlite3.connect(address.path, timeout=0)
                with pytest.raises(sqlite3.OperationalError, match="locked"):
                    other.execute("BEGIN IMMEDIATE")
                other.close()
            else:
                client = await asyncpg.connect(address.url)
                free = "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))"
                assert not await client.fetchval(free, "headrace bundle shelf")
                await client.close()


@pytest.mark.parametrize("name", ["sqlite", "postgres"])
async def test_many_processes_may_migrate_at_once(
    shelf: Path, name: str, servers: Servers, tmp_path: Path
) -> None:
    url = store_url(name, servers, tmp_path)
    async with headrace.App(url):
        pass  # so that they meet at the bundle's tables rather than at the engine's
    started = [
        subprocess.Popen(  # noqa: ASYNC220 - they are waited for with a limit
            [sys.executable, "-c", OPEN, url], stderr=subprocess.PIPE, text=True
        )
        for _ in range(5)
    ]
    told = [process.communicate(timeout=60)[1] for process in started]
    assert [process.returncode for process in started] == [0] * 5, told


async def test_a_script_that_fails_leaves_nothing_half_done(
    shelf: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = shelf / "migrations" / "0002_pages.py"
    good = file.read_text()
    file.write_text(good + "    raise RuntimeError('out of paper')\n")
    async with headrace.App(url, bundles=["shelf"]) as app:
        (failure,) = app.bundles.failures
        assert "out of paper" in failure.reason
        assert "shelf.add" not in app.tasks
        assert (await app.list()).jobs == []
        state = await setup_of(app).tables_state()
        assert state is not None
        assert state.pending == ("0001", "0002")
    file.write_text(good)
    async with headrace.App(url, bundles=["shelf"]) as app:
        assert not app.bundles.failures


async def test_routes_of_a_bundle_out_of_service_say_so(shelf: Path, tmp_path: Path) -> None:
    import headrace.server
    from tests.bundles.conftest import client_of

    (shelf / "migrations" / "0002_pages.py").write_text("raise RuntimeError('no')\n")
    app = headrace.App(f"sqlite:///{tmp_path}/jobs.db", bundles=["shelf"])
    async with client_of(app) as client:  # its routes are made before the App is opened
        answer = await client.get("/shelf/books")
        assert answer.status_code == 503
        assert answer.json()["type"].endswith(":bundle-out-of-service")
    await app.close()


@pytest.mark.parametrize("name", ["sqlite", "postgres"])
async def test_a_program_that_may_not_migrate_does_not(
    shelf: Path, name: str, servers: Servers, tmp_path: Path
) -> None:
    url = store_url(name, servers, tmp_path)
    async with headrace.App(url):
        pass
    async with headrace.App(url, bundles=["shelf"], migrate="never") as app:
        (failure,) = app.bundles.failures
        assert "lack 0001, 0002" in failure.reason
        assert "headrace migrate" in failure.reason
    async with headrace.App(url, bundles=["shelf"]):
        pass
    async with headrace.App(url, bundles=["shelf"], migrate="never") as app:
        assert not app.bundles.failures


async def test_tables_of_a_newer_package_are_refused(shelf: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with headrace.App(url, bundles=["shelf"]):
        pass
    (shelf / "migrations" / "0002_pages.py").unlink()
    async with headrace.App(url, bundles=["shelf"]) as app:
        (failure,) = app.bundles.failures
        assert "version 0002" in failure.reason


@pytest.mark.parametrize("name", ["sqlite", "postgres"])
async def test_the_script_makes_the_tables(
    shelf: Path, name: str, servers: Servers, tmp_path: Path
) -> None:
    url = store_url(name, servers, tmp_path)
    async with headrace.App(url):
        pass
    setup = setup_of(headrace.App(url, bundles=["shelf"]))
    script = await setup.migration_script()
    assert "CREATE TABLE books" in script
    await setup.close()
    await asyncio.to_thread(_run_script, setup, script)
    async with headrace.App(url, bundles=["shelf"], migrate="never") as again:
        assert not again.bundles.failures
        assert await setup_of(again).migration_script() == ""


def _run_script(setup: headrace.bundles.Setup, script: str) -> None:
    if setup.tables_address.postgres:
        import psycopg

        with psycopg.connect(setup.tables_url, autocommit=True) as connection:
            connection.execute(script.encode())
        return
    import sqlite3

    assert setup.tables_address.path is not None
    opened = sqlite3.connect(setup.tables_address.path)
    opened.executescript(script)
    opened.close()


def test_looking_makes_no_file(shelf: Path, tmp_path: Path) -> None:
    app = headrace.App(f"sqlite:///{tmp_path}/jobs.db", bundles=["shelf"])
    asyncio.run(setup_of(app).tables_state())
    assert not (tmp_path / "jobs-shelf.db").exists()


def test_an_app_may_be_used_on_one_loop_after_another(shelf: Path, tmp_path: Path) -> None:
    app = headrace.App(f"sqlite:///{tmp_path}/jobs.db", bundles=["shelf"])

    async def use() -> int:
        await app.open()
        async with setup_of(app).engine().connect() as connection:
            found = (await connection.execute(sa.text("SELECT count(*) FROM books"))).scalar_one()
        await app.close()
        return int(found)

    assert [asyncio.run(use()) for _ in range(3)] == [0, 0, 0]


def test_an_app_without_bundles_imports_nothing_of_theirs() -> None:
    code = (
        "import sys, headrace; headrace.App('sqlite:///:memory:');"
        "bad = {'sqlalchemy', 'alembic', 'fastapi', 'importlib.metadata', 'headrace.bundles'};"
        "sys.exit(str(bad & set(sys.modules)) if bad & set(sys.modules) else 0)"
    )
    environment = {name: value for name, value in os.environ.items() if "HEADRACE" not in name}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
