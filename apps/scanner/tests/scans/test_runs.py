"""Runs on platforms without a browser: what changed is found and written once, on every engine."""

from __future__ import annotations

import itertools

import pytest
from scanner_support.places import EVERYWHERE, Scanning
from tests.support.processes import until

import headrace
from headrace import JobFilter, Status
from headrace_scanner.scanner import UNFINISHED
from headrace_scanner.scanning import tasks
from headrace_scanner.scanning.agreement import Agreement
from headrace_scanner.store.records import Observation, Outcome, SaleStatus
from headrace_scanner.store.writing import Attempt


@EVERYWHERE
async def test_a_run_finds_what_changed_and_writes_it_once(scanning: Scanning) -> None:
    shops, ids = scanning.shops, ["1", "2", "3", "4", "5"]
    csv = "platform,product,name,price,sale_status\n" + "".join(
        f'musinsa,{each},"{shops.look("musinsa", each).name}",'
        f"{shops.look('musinsa', each).price},on_sale\n"
        for each in ids
    )
    answer = await scanning.client.post("/scanner/sets/spring/file", content=csv.encode())
    assert answer.json() == {"set": "spring", "new": 5, "known": 0}
    shops.put("musinsa", "1", price=shops.look("musinsa", "1").price + 700)
    shops.put("musinsa", "2", status="sold_out", name="Another name")
    shops.put("musinsa", "3", behaviour="gone")
    shops.put("musinsa", "4", behaviour="blocked")
    run = await scanning.execute("musinsa-validation-v2", {"set": "spring"})
    await scanning.work()
    scan = await scanning.get(run)
    assert (scan["status"], scan["products"], scan["seen"]) == ("completed", 5, 4)
    assert (scan["changed"], scan["blocked"], scan["failed"]) == (3, 1, 0)
    changes = await scanning.changes(scan=run)
    assert sorted((each["external_id"], each["field"]) for each in changes) == [
        ("1", "price"),
        ("2", "name"),
        ("2", "sale_status"),
        ("3", "sale_status"),
    ]
    products, _ = await scanning.scanner.products(platform="musinsa")
    known = {each.external_id: each for each in products}
    assert known["2"].sale_status == "sold_out"
    assert known["3"].sale_status == "gone"
    assert known["3"].name == shops.look("musinsa", "3").name, "what is gone keeps its name"
    assert known["4"].seen_at is None, "nothing was seen of what was refused"
    report = await scanning.client.get(f"/scanner/scans/{run}/report")
    assert "Another name" in report.text
    # The same again finds nothing new.
    again = await scanning.execute("musinsa-validation-v2", {"set": "spring"})
    await scanning.work()
    assert (await scanning.get(again))["changed"] == 0
    assert len(await scanning.changes(platform="musinsa")) == 4
    result = await scanning.app.result(run, 5)
    assert result["changes"] == {"price": 1, "name": 1, "sale_status": 2}


async def test_each_platform_without_a_browser_is_read(scanning: Scanning) -> None:
    for platform in ("hwahae", "zigzag", "musinsa", "default"):
        url = scanning.shops.page(platform, "77")
        goods = scanning.shops.put(platform, "77", status="sold_out")
        scan = await scanning.scan(platform, [url])
        item = scan["items"][0]
        assert (item["name"], item["price"]) == (goods.name, goods.price), platform
        assert item["sale_status"] == "sold_out"


async def test_shops_that_do_not_answer_are_told_and_the_rest_is_scanned(
    scanning: Scanning, monkeypatch: pytest.MonkeyPatch
) -> None:
    shops = scanning.shops
    settings = headrace_settings(scanning, visit_seconds=2.0, tries=1, batch_size=20)
    monkeypatch.setattr(scanning.service.setup, "settings", settings)
    shops.put("hwahae", "slow", behaviour="slow")
    shops.put("hwahae", "broken", behaviour="broken")
    shops.put("hwahae", "empty", behaviour="no_price")
    shops.put("hwahae", "busy", behaviour="busy")
    scan = await scanning.scan("hwahae", ["slow", "broken", "empty", "busy", "fine"])
    assert (scan["seen"], scan["failed"], scan["blocked"]) == (1, 3, 1)
    errors = {each["external_id"]: each["error"] for each in scan["items"]}
    assert "did not answer within 2 s" in errors["slow"]
    assert "answered 500" in errors["broken"]
    assert "the answer has no /data/product" in errors["empty"]
    assert "answered 429" in errors["busy"]


async def test_a_shop_that_refuses_is_left_alone(scanning: Scanning) -> None:
    ids = [f"b{number}" for number in range(8)]
    for each in ids:
        scanning.shops.put("zigzag", each, behaviour="busy")
    scan = await scanning.scan("zigzag", ids)
    assert scan["blocked"] == 8
    assert len(scanning.shops.visits) == scanning.service.settings.blocked_in_a_row


async def test_extract_jobs_ask_the_platforms(scanning: Scanning) -> None:
    shops = scanning.shops
    shops.put("hwahae", "9", price=9000)
    shops.put("musinsa", "9", price=7000)
    shops.put("zigzag", "9", price=5000, status="sold_out")
    offers = {"hwahae": "9", "musinsa": "9", "zigzag": "9"}
    many = await scanning.execute(
        "extract-validation-v2", {"type": "multi_platform", "products": offers}
    )
    one = await scanning.app.enqueue(
        "scanner.single_product", {"platform": "hwahae", "product": "9"}
    )
    stranger = await scanning.app.enqueue(
        "scanner.url_extraction", {"url": shops.page("extract", "x"), "set": "found"}
    )
    known = await scanning.app.enqueue(
        "scanner.url_extraction", {"url": shops.page("zigzag", "9") + "?utm_source=a"}
    )
    bad = await scanning.execute("extract-validation-v2", {"type": "everything"})
    await scanning.work()
    found = (await scanning.app.result(many, 5))["multi_platform"]
    assert found["cheapest"] == "musinsa"
    assert {each["platform"]: each["price"] for each in found["offers"]} == {
        "hwahae": 9000,
        "musinsa": 7000,
        "zigzag": 5000,
    }
    assert (await scanning.app.result(one.id, 5))["price"] == 9000
    unknown = await scanning.app.result(stranger.id, 5)
    assert (unknown["platform"], unknown["name"]) == ("default", shops.look("extract", "x").name)
    named = await scanning.app.result(known.id, 5)
    assert (named["platform"], named["product"]) == ("zigzag", "9")
    assert [each.name for each in await scanning.scanner.sets()] == ["found"]
    job = await scanning.app.get(bad)
    assert job.status is Status.FAILED
    assert "use one of url_extraction, single_product, multi_platform" in str(job.error)
    assert len(shops.visits) == 6, "each product was asked for once"


@EVERYWHERE
async def test_writes_of_an_attempt_that_was_given_up_are_refused(scanning: Scanning) -> None:
    scan = await scanning.scan("hwahae", ["1"])
    scans, run = scanning.service.scans, scan["scan_id"]
    old, new = Attempt("job", 3), Attempt("job", 4)
    seen = Observation(
        product_id="p", outcome=Outcome.SEEN, name="x", price=1.0, sale_status=SaleStatus.ON_SALE
    )
    await scans.resume(run, new)
    for write in (
        scans.observe(run, seen, old),
        scans.complete(run, "elsewhere", old),
        scans.fail(run, "no", old),
        scans.write(run, "hwahae", old),
        scans.begin(run, "hwahae", "", old),
    ):
        with pytest.raises(headrace.LeaseLost):
            await write
    assert await scans.observed(run, ["p"]) == set()
    found = await scans.get(run)
    assert found is not None
    assert (str(found.status), found.report == "elsewhere") == ("completed", False)


@EVERYWHERE
async def test_rows_follow_runs_that_fail_are_cancelled_or_begin_again(
    scanning: Scanning, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(self: object) -> None:
        raise headrace.NotRetryable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(tasks.Steps, "write", broken)
        run = await scanning.execute("hwahae-validation-v2", {"products": ["1", "2"]})

        async def failed() -> bool:
            row = await scanning.service.scans.get(run)
            return row is not None and "the disk is full" in str(row.error)

        # What settles the row may wait for its run.
        steady = headrace.JobOrchestrator(scanning.app)
        await steady.start()
        await until(failed, "a row that failed, though nobody looks", 100.0)
        await steady.stop()
    # Begun again it does what is left, and its row goes along.
    await scanning.app.workflows.retry(await scanning.app.get(run))
    await scanning.work()
    row = await scanning.service.scans.get(run)
    assert row is not None
    assert (str(row.status), row.error, row.seen) == ("completed", None, 2)
    assert len(scanning.shops.visits) == 2, "no product was asked for again"
    # Cancelled in the middle of a visit.
    scanning.shops.hold("hwahae")
    cancelled = await scanning.execute("hwahae-validation-v2", {"products": ["3"]})
    worker = headrace.JobOrchestrator(scanning.app)
    await worker.start()
    await until(lambda: len(scanning.shops.visits) == 3, "the visit")
    await scanning.app.cancel(cancelled)
    await scanning.finished(cancelled)
    shown = await scanning.get(cancelled)
    assert (shown["status"], shown["error"][:17]) == ("failed", "It was cancelled:")
    scanning.shops.release()
    await worker.stop()


@pytest.mark.parametrize("looks", [1, 2])
async def test_a_run_that_ends_while_its_row_is_settled_is_not_taken_for_settled(
    scanning: Scanning, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    run = await scanning.execute("hwahae-validation-v2", {"products": ["1"]})
    scans, agreement = scanning.service.scans, Agreement(scanning.service)
    await scans.begin(run, "hwahae", "", Attempt("job", 1))
    look, seen = agreement._job, itertools.count(1)

    async def looked(scan_id: str) -> headrace.Job | None:
        job = await look(scan_id)
        if next(seen) == looks:
            await scanning.app.cancel(run)
        return job

    monkeypatch.setattr(agreement, "_job", looked)
    for _ in range(2):
        settled = await agreement.settle_one(run)
        row = await scans.get(run)
        assert row is not None
        # Nobody comes again to a row that is said to be settled.
        assert not settled or str(row.status) == "failed"
    assert settled


async def test_runs_of_a_platform_are_one_at_a_time_and_in_order(scanning: Scanning) -> None:
    shops = scanning.shops
    shops.slow_seconds = 0.02
    for name, priority in (("first", 0), ("second", 0), ("urgent", 7)):
        products = [f"{name}-{each}" for each in range(5)]
        params = {"products": products}
        await scanning.execute("hwahae-validation-v2", params, priority=priority)
    workers = [headrace.JobOrchestrator(scanning.app, name=each) for each in ("one", "two")]
    for worker in workers:
        await worker.start()

    async def idle() -> bool:
        return not (await scanning.app.list(JobFilter(statuses=UNFINISHED), limit=1)).jobs

    await until(idle, "the end of all runs", 100.0)
    for worker in workers:
        await worker.stop()
    visits = sorted(shops.visits, key=lambda each: each.began)
    for before, after in itertools.pairwise(visits):
        assert before.ended is not None
        assert before.ended <= after.began, "two at once"
    runs = [name for name, _ in itertools.groupby(each.product.split("-")[0] for each in visits)]
    assert runs == ["urgent", "first", "second"]


def headrace_settings(scanning: Scanning, **changes: object) -> object:
    """The settings of the bundle with some of them changed."""
    import msgspec

    return msgspec.structs.replace(scanning.service.settings, **changes)
