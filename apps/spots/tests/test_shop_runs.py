"""Runs: their statuses, their rows and jobs, their files, on all engines."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from msgspec import structs
from spots_support.places import EVERYWHERE, Place, Spots, open_spots
from tests.publishing.receiver import a_receiver

import headrace
from headrace.server.listen import listening
from headrace_spots.agreement import NEVER_CAME, Agreement
from headrace_spots.mock_shop.plans import ShopPlan
from headrace_spots.mock_shop.server import MockShop
from headrace_spots.pipeline import EVENT, Attempt
from headrace_spots.service import TASK
from headrace_spots.store.records import RunStatus
from headrace_spots.store.repository import ShopRepository

SMALL = ShopPlan(slug="small", name="Small Shop", pages=3, per_page=4)
KOREAN = ShopPlan(
    slug="korean",
    name="햇살 카페",
    pages=2,
    per_page=4,
    form="microdata",
    charset="euc-kr",
    languages=("ko",),
)
STAGES = ["crawling", "crawled", "parsing", "parsed", "analyzing", "embedding", "completed"]


@EVERYWHERE
async def test_a_run_shows_its_statuses_in_order_and_one_id_everywhere(
    spots: Spots, place: Place
) -> None:
    seen: list[str] = []

    async with (
        MockShop([SMALL]) as shop,
        listening(spots.app, host="127.0.0.1", port=0) as address,
        httpx.AsyncClient(base_url=address) as outside,
    ):

        @spots.app.on_stage
        async def look(job: Any, stage: str, done: bool) -> None:
            if job.task == TASK:
                shown = (await outside.get(f"/spots/jobs/{job.id}")).json()
                seen.append(shown["status"])
                assert shown["job"]["status"] == "running"

        accepted = await spots.post(shop.url("/small/"))
        run_id = accepted["job_id"]
        assert accepted["status"] == "queued"
        first = await spots.get(run_id)
        fields = ("job_id", "run_id", "status", "progress", "error")
        assert [first[each] for each in fields] == [run_id, run_id, "queued", 0, None]
        await spots.work()
    shown = await spots.get(run_id)
    seen.append(shown["status"])
    # As it was seen: a status that comes again is one more.
    assert [status for status, _ in itertools.groupby(seen)] == STAGES
    assert (shown["progress"], shown["pages"], shown["reviews"]) == (100, 5, 12)
    assert shown["store"]["name"] == "Small Shop"
    job = await spots.app.get(run_id)
    assert (job.status, job.queue, job.lane) == ("completed", "hidden_spot", "host:127.0.0.1")
    files = await spots.app.artifacts.list(run_id)
    layers = {each.layer for each in files}
    assert layers == {"bronze", "silver", "gold", "artifacts"}
    assert all(each.path.split("/")[1] == run_id for each in files)
    async with spots.setup.engine().connect() as connection:
        for table in ("store_snapshots", "reviews", "analysis", "embeddings"):
            found = await connection.execute(sa.text(f"SELECT DISTINCT run_id FROM {table}"))
            assert [row[0] for row in found] == [run_id]
    report = await spots.client.get(f"/spots/jobs/{run_id}/report")
    assert "<svg" in report.text
    assert "<script" not in report.text
    assert report.headers["content-security-policy"].startswith("sandbox")
    kept = await spots.app.artifacts.kept("spots")
    assert [each.job_id for each in kept.files] == [run_id]


@EVERYWHERE
async def test_the_row_is_there_before_the_job(
    spots: Spots, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one PostgreSQL both appear at once, and neither if it fails; else the row is first."""
    enqueue, together = spots.app.enqueue, place.name == "postgres"
    assert spots.service.one_transaction is together
    looks: list[tuple[str | None, bool]] = []

    async def watched(job: Any, *args: Any, **options: Any) -> Any:
        assert ("conn" in options) is together
        row = await spots.service.repository.get(job.id)
        looks.append((None if row is None else row.status, await has_job(spots, job.id)))
        stored = await enqueue(job, *args, **options)
        if len(looks) == 2:
            raise ConnectionError("killed")
        return stored

    monkeypatch.setattr(spots.app, "enqueue", watched)
    accepted = await spots.shops.add("http://127.0.0.1:9/one")
    assert looks == [(None, False) if together else ("queued", False)]
    assert await has_job(spots, accepted.job_id)
    with pytest.raises(ConnectionError):
        await spots.shops.add("http://127.0.0.1:9/two")
    rows, _ = await spots.service.repository.runs()
    assert len(rows) == (1 if together else 2)
    page = await spots.app.list(headrace.JobFilter(tasks=(TASK,)))
    assert {each.id for each in page.jobs} == {each.run_id for each in rows}


async def has_job(spots: Spots, job_id: str) -> bool:
    try:
        await spots.app.get(job_id)
    except headrace.JobNotFound:
        return False
    return True


async def test_a_row_whose_job_never_came_ends_as_failed(
    spots: Spots, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[Any] = []

    async def dies(job: Any, *args: Any, **options: Any) -> Any:
        lost.append(job)
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(spots.app, "enqueue", dies)
        with pytest.raises(ConnectionError):
            await spots.shops.add("http://127.0.0.1:9/small/")
    run_id = lost[0].id
    assert (await spots.get(run_id))["status"] == "queued", "it may still come"
    await make_older(spots, run_id)
    shown = await spots.get(run_id)
    assert (shown["status"], shown["error"], shown["job"]) == ("failed", NEVER_CAME, None)
    listed = await spots.client.get("/spots/jobs", params={"status": "failed"})
    assert [each["job_id"] for each in listed.json()["jobs"]] == [run_id]
    # Whoever enqueues was only slow: the run goes on.
    async with MockShop([SMALL]) as shop:
        job = spots.app.job(TASK, {"url": shop.url("/small/"), "host": "127.0.0.1"})
        await spots.app.enqueue(structs.replace(job, id=run_id))
        await spots.work()
    assert (await spots.get(run_id))["status"] == "completed"


async def make_older(spots: Spots, run_id: str) -> None:
    before = (datetime.now(UTC) - timedelta(minutes=2)).timestamp()
    async with spots.setup.engine().begin() as connection:
        await connection.execute(
            sa.text("UPDATE store_snapshots SET created_at = :at WHERE run_id = :id"),
            {"at": before, "id": run_id},
        )


@EVERYWHERE
async def test_a_cancelled_job_has_a_failed_row_and_a_retried_one_goes_on(
    spots: Spots, place: Place
) -> None:
    async with MockShop([SMALL]) as shop:
        run_id = (await spots.post(shop.url("/small/")))["job_id"]
        await spots.app.cancel(run_id, "not wanted")
        shown = await spots.get(run_id)
        assert shown["status"] == "failed"
        assert "cancelled" in shown["error"]
        await spots.app.retry(run_id)
        assert (await spots.get(run_id))["status"] == "queued"
        await spots.work()
        assert (await spots.get(run_id))["status"] == "completed"


async def test_rows_are_settled_without_anybody_looking(spots: Spots) -> None:
    run_id = (await spots.post("http://127.0.0.1:9/small/"))["job_id"]
    await spots.app.cancel(run_id)
    await spots.app.enqueue("spots.settle", {})
    await spots.work()
    row = await spots.service.repository.get(run_id)
    assert row is not None
    assert row.status == RunStatus.FAILED


@pytest.mark.parametrize(("often", "end"), [(1, "completed"), (9, "failed")])
async def test_a_run_whose_last_attempt_was_killed_after_the_commit_is_run_once_more(
    spots: Spots, monkeypatch: pytest.MonkeyPatch, often: int, end: str
) -> None:
    """All is stored, but the job could not say so: another attempt only has to say so."""
    async with MockShop([SMALL]) as shop:
        finished, deaths = Attempt.finished, iter(range(often))

        async def killed(attempt: Attempt, row: Any) -> Any:
            for _ in deaths:
                raise headrace.ValidationError("as a worker that is gone for good")
            return await finished(attempt, row)

        monkeypatch.setattr(Attempt, "finished", killed)
        run_id = (await spots.post(shop.url("/small/")))["job_id"]
        # `spots.settle` follows from the failure.
        await spots.work()
        await Agreement(spots.service).settle_all()
        job = await spots.app.get(run_id)
        row = await spots.service.repository.get(run_id)
        assert row is not None
        assert (job.status, row.status, job.token) == (end, end, 2)
        assert set(shop.visits.counts.values()) == {1}


@EVERYWHERE
async def test_writes_of_an_attempt_that_was_given_up_change_nothing(
    spots: Spots, place: Place
) -> None:
    repository: ShopRepository = spots.service.repository
    run_id = (await spots.shops.add("http://127.0.0.1:9/x")).job_id
    assert await repository.begin(run_id, 5) == "stored"
    assert await repository.show(run_id, 4, RunStatus.CRAWLING) == "stale"
    assert await repository.fail(run_id, 4, "late") == "stale"
    assert await repository.show(run_id, 5, RunStatus.CRAWLED) == "stored"
    assert await repository.fail(run_id, 5, "for good") == "stored"
    assert await repository.show(run_id, 5, RunStatus.PARSING) == "stale", "it has failed"
    row = await repository.get(run_id)
    assert row is not None
    assert (row.status, row.error, row.token) == ("failed", "for good", 5)
    assert (
        await repository.show("01a1e876-29f4-7421-95c3-62c492c6cf04", 9, RunStatus.CRAWLED)
        == "gone"
    )


async def test_a_shop_without_reviews_fails_once_with_its_reason(spots: Spots) -> None:
    async with MockShop([ShopPlan(slug="empty", name="Empty", pages=1, per_page=0)]) as shop:
        shown = await spots.run(shop.url("/empty/"))
    assert shown["status"] == "failed"
    assert "no reviews were found" in shown["error"]
    assert shown["job"]["attempt"] == 1


async def test_a_second_run_replaces_the_reviews_and_keeps_the_history(spots: Spots) -> None:
    async with MockShop([KOREAN]) as shop:
        first = await spots.run(shop.url("/korean/"))
        second = await spots.run(shop.url("/korean/"))
    store = (await spots.client.get(f"/spots/stores/{first['store']['store_id']}")).json()
    assert store["name"] == "햇살 카페"
    assert store["run_id"] == second["run_id"]
    assert [each["run_id"] for each in store["history"]] == [second["run_id"], first["run_id"]]
    reviews = await spots.client.get(f"/spots/stores/{store['store_id']}/reviews")
    assert len(reviews.json()["reviews"]) == 8
    hits = (await spots.client.get("/spots/search", params={"q": "커피 맛", "k": 3})).json()["hits"]
    assert hits
    assert {each["run_id"] for each in hits} == {second["run_id"]}
    # A run that was asked for earlier and ends later does not take the place of the newer one.
    assert await spots.service.repository.body(first["run_id"]) is not None
    gone = await spots.client.delete(f"/spots/stores/{store['store_id']}")
    assert gone.status_code == 204
    assert (await spots.client.get(f"/spots/jobs/{first['run_id']}")).status_code == 404
    assert (await spots.app.artifacts.kept("spots")).files == []


async def test_an_analysed_shop_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_ALLOW_PRIVATE_WEBHOOKS", "true")
    async with (
        MockShop([SMALL]) as shop,
        a_receiver() as receiver,
        open_spots(place.url) as spots,
    ):
        await spots.app.put_destination("crm", "webhook", {"url": receiver.url})
        shown = await spots.run(shop.url("/small/"))
    (event,) = [each.event for each in receiver.requests]
    assert event["type"] == EVENT
    assert event["data"]["run_id"] == shown["run_id"]
    assert event["data"]["reviews"] == 12
