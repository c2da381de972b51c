"""Jobs that expire, keys with a policy, and lanes that are full, as a program uses them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

import headrace
from headrace.client import Client
from headrace.model.insert_policy import EXPIRED, InsertPolicy
from headrace.server.listen import listening
from tests.support.processes import until


@pytest.fixture
async def app(url: str, tmp_path: Path) -> AsyncIterator[headrace.App]:
    async with an_app(url, artifacts=str(tmp_path / "files")) as app:
        yield app


def an_app(url: str, **settings: Any) -> headrace.App:
    app = headrace.App(url, **settings)

    @app.task(expires=60)
    async def hurry(n: int = 0) -> int:
        return n

    @app.task
    async def work(n: int = 0) -> int:
        return n

    @app.task(lane=headrace.Lane("shop:{shop}", when_full="refuse"))
    async def load(shop: str) -> str:
        return shop

    @app.task
    async def read(file: str) -> int:
        return len(file)

    @app.task(lane=headrace.Lane("page:{page}", when_full="replace"))
    async def render(page: str, version: int) -> int:
        return version

    return app


async def test_a_task_and_a_job_say_when_it_expires(app: headrace.App) -> None:
    hurry = app.find_task("hurry")
    plain = await hurry.enqueue()
    assert plain.expires_at is not None
    assert (plain.expires_at - plain.created_at).total_seconds() == pytest.approx(60, abs=1)
    stored = (await app.get(plain.id)).expires_at
    assert stored is not None
    assert abs((stored - plain.expires_at).total_seconds()) < 5

    moment = datetime.now(UTC) + timedelta(hours=3)
    timed = await hurry.options(expires=moment).enqueue()
    stored = (await app.get(timed.id)).expires_at
    assert stored is not None
    assert abs((stored - moment).total_seconds()) < 0.01

    never = await hurry.options(expires=None).enqueue()
    assert (await app.get(never.id)).expires_at is None
    [why] = [each for each in await app.why(plain.id) if "has not started by" in each]
    assert f"{(await app.get(plain.id)).expires_at:%Y-%m-%d %H:%M:%S}" in why


async def test_a_worker_of_other_queues_ends_expired_jobs(app: headrace.App) -> None:
    job = await app.find_task("hurry").enqueue()
    worker = headrace.JobOrchestrator(app, queues=["elsewhere"])
    await worker.start()
    try:
        app.clock.advance(61)

        async def ended() -> bool:
            return (await app.get(job.id)).status.final

        await until(ended, "the job to expire")
    finally:
        await worker.stop()
    found = await app.get(job.id)
    assert (found.status, found.error) == ("cancelled", EXPIRED)


async def test_a_server_ends_expired_jobs_where_no_worker_is(app: headrace.App) -> None:
    job = await app.find_task("hurry").enqueue()
    async with listening(app, port=0):
        app.clock.advance(61)

        async def ended() -> bool:
            return (await app.get(job.id)).status.final

        await until(ended, "the job to expire")
    assert (await app.get(job.id)).error == EXPIRED


@pytest.mark.parametrize("expires", [0, -1, "soon", datetime(2030, 1, 1), float("nan")])
def test_a_time_that_cannot_be_is_refused(expires: Any) -> None:
    app = headrace.App("sqlite:///:memory:")

    @app.task
    async def work() -> None: ...

    with pytest.raises(headrace.InvalidSetting, match="expires"):
        work.options(expires=expires)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 60}, "give key="),
        ({"on_duplicate": "replace"}, "give key="),
        ({"key": "k", "on_duplicate": "debounce"}, "needs delay="),
        ({"key": "k", "on_duplicate": "later"}, "return, replace, debounce, got 'later'"),
        ({"key": "k", "on_duplicate": "replace", "window": 5}, "window needs"),
        ({"key": "k", "max_wait": 5}, "max_wait needs"),
        ({"key": "k", "window": 0}, "window must be more than 0"),
    ],
)
def test_policies_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    app = headrace.App("sqlite:///:memory:")

    @app.task
    async def work() -> None: ...

    with pytest.raises(headrace.InvalidSetting, match=message):
        work.options(**options)


def test_a_lane_says_what_it_knows() -> None:
    with pytest.raises(headrace.InvalidSetting, match="wait, refuse, replace, cancel_running"):
        headrace.Lane("x", when_full="drop")  # type: ignore[arg-type]


def test_a_key_and_a_lane_do_not_both_decide() -> None:
    app = headrace.App("sqlite:///:memory:")

    @app.task(lane=headrace.Lane("x", when_full="replace"))
    async def work() -> None: ...

    with pytest.raises(headrace.InvalidSetting, match="both say which job gives way"):
        work.options(key="k", on_duplicate="replace").job()
    # A window only finds a job: that is no contradiction.
    assert work.options(key="k", window=5).job().policy == InsertPolicy(
        window=5, when_full="replace"
    )


async def test_a_full_lane_refuses(app: headrace.App) -> None:
    load = app.find_task("load")
    await load.enqueue(shop="a")
    with pytest.raises(headrace.LaneFull, match="lane 'shop:a' of queue 'default' is full"):
        await load.enqueue(shop="a")
    await load.enqueue(shop="b")
    await headrace.JobOrchestrator(app).run_until_idle()
    await load.enqueue(shop="a")


async def test_the_newest_of_many_is_run(app: headrace.App) -> None:
    render = app.find_task("render")
    jobs = await app.enqueue_many([render.job(page="p", version=n) for n in range(5)])
    assert [job.status.value for job in jobs] == ["pending"] * 5
    await headrace.JobOrchestrator(app).run_until_idle()
    ended = [await app.get(job.id) for job in jobs]
    # The first had its place already.
    assert [job.status.value for job in ended] == [
        "completed",
        *["cancelled"] * 3,
        "completed",
    ]
    assert ended[1].error == f"replaced by job {jobs[2].id}"


async def test_debounce_through_the_app(app: headrace.App) -> None:
    bound = app.find_task("work").options(key="k", on_duplicate="debounce", delay=30, max_wait=100)
    first = await bound.enqueue(n=1)
    app.clock.advance(20)
    second = await bound.enqueue(n=2)
    assert (second.id, second.args) == (first.id, {"n": 2})
    app.clock.advance(31)
    await headrace.JobOrchestrator(app).run_until_idle()
    assert await app.result(first.id, timeout=10) == 2
    assert (await bound.enqueue(n=3)).id != first.id


async def test_over_http_and_by_a_client(app: headrace.App) -> None:
    async with listening(app, port=0) as url, httpx.AsyncClient(base_url=url) as http:
        made = await http.post("/jobs", json={"task": "work", "expires": 30})
        assert made.status_code == 202
        assert made.json()["expires_at"] is not None
        both = {"task": "work", "expires": 30, "expires_at": "2030-01-01T00:00:00Z"}
        refused = await http.post("/jobs", json=both)
        assert (refused.status_code, refused.json()["field"]) == (422, "expires")
        wrong = await http.post("/jobs", json={"task": "work", "window": 5})
        assert wrong.status_code == 422
        assert "give key=" in wrong.json()["detail"]
        assert (await http.post("/jobs", json={"task": "load", "args": {"shop": "a"}})).is_success
        full = await http.post("/jobs", json={"task": "load", "args": {"shop": "a"}})
        assert (full.status_code, full.json()["type"].rsplit(":")[-1]) == (409, "lane-full")

        async with Client(url) as client:
            with pytest.raises(headrace.LaneFull):
                await client.enqueue("load", {"shop": "a"})
            moment = datetime(2040, 5, 6, tzinfo=UTC)
            job = await client.enqueue("work", {"n": 1}, expires=moment)
            assert job.expires_at == moment
            options: dict[str, Any] = {"key": "c", "on_duplicate": "debounce", "delay": 60}
            one = await client.enqueue("work", {"n": 1}, **options)
            two = await client.enqueue("work", {"n": 2}, **options)
            assert (two.id, two.args) == (one.id, {"n": 2})
            files = {"file": ("a.txt", b"a")}
            sent: dict[str, Any] = {"key": "f", "on_duplicate": "replace", "expires": moment}
            assert (await client.enqueue("read", files=files, **sent)).expires_at == moment
            with pytest.raises(headrace.InvalidSetting, match="on_duplicate"):
                await client.enqueue("work", {}, key="c", on_duplicate="later")  # type: ignore[arg-type]


async def test_a_batch_is_whole_so_it_takes_no_policies(app: headrace.App) -> None:
    async with listening(app, port=0) as url, httpx.AsyncClient(base_url=url) as http:
        plain = {"task": "work", "key": "plain"}
        for other in (
            {"task": "load", "args": {"shop": "a"}},
            {"task": "work", "key": "w", "window": 5},
        ):
            refused = await http.post("/jobs/batch", json={"jobs": [plain, other]})
            assert (refused.status_code, refused.json()["field"]) == (409, "jobs[1]")
        assert (await http.get("/jobs")).json()["jobs"] == []
        assert (await http.post("/jobs/batch", json={"jobs": [plain]})).status_code == 202


async def test_files_of_a_job_that_is_refused_are_removed(
    app: headrace.App, tmp_path: Path
) -> None:
    @app.task("look", lane=headrace.Lane("reading", when_full="refuse"))
    async def read(file: str) -> int:
        return len(file)

    first = await read.options(files={"file": ("a.txt", b"abc")}).enqueue()
    with pytest.raises(headrace.LaneFull):
        await read.options(files={"file": ("b.txt", b"abcd")}).enqueue()
    kept = [each.name for each in (tmp_path / "files").rglob("*.txt")]
    assert kept == ["a.txt"]
    assert (await app.get(first.id)).status == "pending"
    bound = read.options(
        files={"file": ("c.txt", b"c")}, key="k", on_duplicate="debounce", delay=5, lane="other"
    )
    with pytest.raises(headrace.InvalidInput, match="files belong to one job"):
        await bound.enqueue()


async def test_a_job_that_follows_takes_no_policy_of_a_key(app: headrace.App) -> None:
    @app.task(retries=0)
    async def leads(ctx: headrace.Context) -> None:
        ctx.then(app.find_task("work").options(key="k", window=5).job(n=1))

    job = await leads.enqueue()
    await headrace.JobOrchestrator(app).run_until_idle()
    found = await app.get(job.id)
    assert found.status.value == "failed"
    assert "let a job follow that enqueues it" in (found.error or "")
