"""Every page of the dashboard at least once, over the scene of the shop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import msgspec
from playwright.async_api import Browser, Page

import headrace
from headrace.admin.bulk import KIND, decode
from headrace.breakers.by_hand import open_by_hand
from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.dead_letters import DeadLetters
from headrace.dispatchers.events.message_parser import RejectedMessage
from headrace.model.job import JobFilter
from headrace.model.names import WORKFLOW
from headrace.model.status import Status
from headrace.monitor.search import fingerprint_of
from headrace.server.dashboard.page import all_pages
from tests.dashboard.conftest import Site, Windows
from tests.dashboard.pictures import alerting, open_shop, sign_in
from tests.dashboard.shop import Shop

# Messages that make a job if they are replayed, one of them alone, one with its group.
MENDED = ("orders:0:9000", "refunds:0:9001")
RATED = "host:example.com"
LONG = "a-name-without-an-end-" * 8


class Tour(NamedTuple):
    """The shop with some more, its site, addresses by the path of their page, and one window."""

    shop: Shop
    site: Site
    addresses: dict[str, list[str]]
    page: Page


@asynccontextmanager
async def open_tour(browser: Browser, folder: Path) -> AsyncIterator[Tour]:
    """Open everything, and sign in."""
    async with open_shop(folder, more=_add) as (shop, site):
        windows = Windows(browser)
        windows.expected = "status of 404"  # of what an action has removed
        page = await (await windows.context(reduced_motion="reduce")).new_page()
        await sign_in(page, site, shop)
        yield Tour(shop, site, await _addresses(shop), page)
        for context in windows.contexts:
            await context.close()
        windows.check()


async def _add(app: headrace.App) -> None:
    """What the shop does not have, and what actions need."""
    engine = app.engine
    await alerting(app)
    await app.put_destination("books", "webhook", {"url": "https://books.example.com/hooks"})
    await app.enqueue("send_receipt", {"order": 1, "to": LONG}, key=LONG, delay=600.0)
    await app.revoke_key((await app.create_key(name="contractor", scope="read")).id)
    await app.workflows.run("daily-report", {"day": "2026-03-10"})

    @app.task(queue="approvals")
    async def refund(ctx: headrace.Context, order: int) -> None:
        """Pay back, when somebody has said yes."""
        await ctx.wait("approved")

    await app.set_rate("invoices", "10/m", lane=RATED, burst=3)
    await app.hold("invoices", lane=RATED, duration=3_600, reason="they asked us to", by="ada")
    await open_by_hand(engine, ("mail", RATED), 600.0, by="ada", reason="they deploy")
    await app.enqueue("refund", {"order": 48_101})
    await headrace.JobOrchestrator(app, name="approver", queues=["approvals"]).run_until_idle()
    # Their task was not known yet when they came.
    body = b'{"handler_name":"tell_team","params":{}}'
    for key in MENDED:
        message = Message(body=body, topic=key.partition(":")[0], key=key, partition=0)
        rejected = RejectedMessage(message, "UnknownTask", 'unknown task "tell_team"')
        await DeadLetters(app).keep("kafka", [rejected])
    # Another server does this one: it is not done while somebody looks.
    made = await app.start_bulk("cancel", JobFilter(tasks=("send_newsletter",)), who="ada")
    record = await engine.record_get(KIND, made.id)
    assert record is not None
    bulk = decode(record)
    bulk.owner, bulk.beat = "elsewhere", await engine.now()
    await engine.record_put(KIND, made.id, msgspec.json.encode(bulk), version=record.version)


async def _addresses(shop: Shop) -> dict[str, list[str]]:
    app = shop.app
    engine = app.engine

    async def one(**wanted: object) -> str:
        page = await engine.list_jobs(JobFilter(**wanted), limit=1)  # type: ignore[arg-type]
        return page.jobs[0].id

    [failed] = await engine.get([shop.job])
    group = f"task={failed.task}&fingerprint={fingerprint_of(failed)}"
    workers = {each.name: each.id for each in await app.workers()}
    letters = (await app.dead_letters()).dead_letters
    down = "task=send_receipt&error_type=ConnectionError"
    known = {
        "/errors/group": [f"/errors/group?{group}"],
        "/jobs": ["/jobs", f"/jobs?{down}&status=failed", "/jobs?queue=nothing", "/jobs?search=zz"],
        "/jobs/bulk": [
            f"/jobs/bulk?action=retry&status=failed&{down}",
            "/jobs/bulk?action=cancel&queue=nothing",
        ],
        "/jobs/{job_id}": [
            f"/jobs/{shop.job}",
            f"/jobs/{await one(statuses=(Status.RUNNING,))}",
            f"/jobs/{await one(statuses=(Status.PENDING,), queues=('invoices',))}",
            f"/jobs/{await one(statuses=(Status.SCHEDULED,))}",
            f"/jobs/{await one(tasks=('refund',))}",
            f"/jobs/{shop.run}",
        ],
        "/jobs/{job_id}/copy": [f"/jobs/{shop.job}/copy"],
        "/workers/{id}": [f"/workers/{workers['worker-1']}", f"/workers/{workers['worker-3']}"],
        "/workflows/{workflow_id:path}": ["/workflows/daily-report"],
        "/runs/{run_id}": [
            f"/runs/{shop.run}",
            f"/runs/{await one(tasks=(WORKFLOW,), statuses=(Status.PENDING,))}",
        ],
        "/bulk/{bulk_id}": [f"/bulk/{each.id}" for each in await app.bulk_actions()],
        "/lanes": ["/lanes", f"/lanes?queue=invoices&lane={RATED}", "/lanes?lane=nothing"],
        "/queues/{name:path}": ["/queues/mail", "/queues/reports"],
        "/schedules/{name:path}": ["/schedules/nightly-report"],
        "/tasks/{name:path}": ["/tasks/send_receipt"],
        "/intake": ["/intake"],
        "/intake/letters/{letter_id:path}": [
            f"/intake/letters/{quote(each, safe='')}" for each in (*MENDED, letters[0].id)
        ],
        "/schedule-form": ["/schedule-form", "/schedule-form?name=nightly-report"],
        "/schedule-preview": ["/schedule-preview?expression=0+3+*+*+*&tz=Europe/Berlin"],
    }
    paths = [each.path for each in all_pages() if not each.path.startswith("/trial")]
    return {path: known[path] if "{" in path else known.get(path, [path]) for path in paths}
