"""An App that is lent to a test comes back as it was."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from headrace import App, Clock, Settings, Status, sync
from headrace.testing import enqueued, override, run, run_blocking
from tests.testing import shop


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    shop.ran.clear()


async def test_tasks_enqueue_into_the_lent_engine() -> None:
    async with override(shop.app) as app:
        job = await shop.greet.enqueue(name="ada")
        assert app is shop.app
        [done] = await run(app)
        assert (done.id, done.status, done.result) == (job.id, Status.COMPLETED, "hello ada")


async def test_everything_is_given_back() -> None:
    before = vars(shop.app).copy()
    tasks = dict(shop.app.tasks)
    async with override(shop.app) as app:

        @app.task
        async def only_in_this_test() -> None: ...

        await only_in_this_test.enqueue()
        assert app.settings.url == "sqlite://"
    assert vars(shop.app) == before
    assert shop.app.tasks == tasks
    assert shop.app.tasks is before["tasks"]


async def test_each_time_is_empty() -> None:
    for _ in range(2):
        async with override(shop.app) as app:
            assert await enqueued(app) == []
            await shop.greet.enqueue(name="ada")
            assert len(await enqueued(app)) == 1


async def test_an_app_that_is_open_goes_on_where_it_was() -> None:
    async with App("sqlite://") as app:

        @app.task
        async def work() -> None: ...

        real = await work.enqueue()
        async with override(app):
            assert await enqueued(app) == []
            await work.enqueue()
        assert [job.id for job in await enqueued(app)] == [real.id]


async def test_it_is_given_back_after_an_error() -> None:
    url = shop.app.settings.url

    async def a_test_that_fails() -> None:
        async with override(shop.app):
            await shop.greet.enqueue(name="ada")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await a_test_that_fails()
    assert shop.app.settings.url == url


async def test_the_clock_may_be_given() -> None:
    clock = Clock()
    async with override(shop.app, clock=clock) as app:
        assert app.clock is app.engine.clock is clock
        assert app.clock.offset == 0
    assert shop.app.clock is not clock


async def test_another_store_may_be_named(tmp_path: Path) -> None:
    async with override(shop.app, url=f"sqlite:///{tmp_path}/test.db") as app:
        await shop.greet.enqueue(name="ada")
        assert (tmp_path / "test.db").exists()
        assert len(await run(app)) == 1


async def test_artifacts_go_to_a_folder_that_is_removed() -> None:
    async with override(shop.app) as app:
        await shop.keep.enqueue()
        [job] = await run(app)
        file = Path(app.settings.artifacts) / job.result
        assert await asyncio.to_thread(file.read_bytes) == b"kept"
        assert app.settings.artifacts != Settings().artifacts
    assert not await asyncio.to_thread(file.exists)


def test_without_async_and_no_thread_is_left() -> None:
    before = threading.active_count()
    with override(shop.app) as app:

        async def test() -> None:
            await shop.greet.enqueue(name="ada")
            await run(app)

        asyncio.run(test())
    assert shop.ran == ["ada"]
    assert threading.active_count() == before


async def test_within_a_running_loop_without_async() -> None:
    with override(shop.app) as app:
        await shop.greet.enqueue(name="ada")
        assert len(await run(app)) == 1


def test_programs_that_block() -> None:
    jobs = sync.wrap(shop.app)
    with override(jobs.app):
        jobs.enqueue(shop.greet.job(name="ada"))
        [job] = run_blocking(jobs, advance=10)
        assert jobs.result(job.id) == "hello ada"
        jobs.close()
