"""The tasks. Those of a run are the steps of its workflow: `scanner.load`, `scanner.scan_browser`
or `scanner.scan_api`, `scanner.compare`, `scanner.write`, `scanner.report`.

Everything that asks a shop is a step in the lane `step` of the platform's queue, of width 1;
everything that people ask for is a run in its lane `platform`. So there is never more than one of
either on a platform, over all machines. What asks a shop has a rate there besides: batches, each
of one product or many, begin no faster than products are asked for.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from headrace import (
    BUGS,
    App,
    AuthenticationError,
    Context,
    Lane,
    NotRetryable,
    ParserError,
    RetryPolicy,
    Snooze,
    ValidationError,
)
from headrace.bundles import Setup
from headrace_scanner.platforms.model import LANE, STEP_LANE
from headrace_scanner.scanning.agreement import Agreement
from headrace_scanner.scanning.extract import Extracted, Extraction, Offers, check_type
from headrace_scanner.scanning.limits import SCAN_SECONDS, STEP_SECONDS, TREE_LIMIT
from headrace_scanner.scanning.scan import BatchEnd, BatchScan
from headrace_scanner.scanning.steps import EVENT, Compared, Loaded, ScanReport, Steps
from headrace_scanner.service import ScannerService

LOAD, COMPARE = "scanner.load", "scanner.compare"
WRITE, REPORT = "scanner.write", "scanner.report"
SCAN_BROWSER, SCAN_API = "scanner.scan_browser", "scanner.scan_api"
SETTLE = "scanner.settle"
SETTLE_EVERY = "*/5 * * * *"
SETTLE_AGAIN = 0.5
# A run that has not ended by then was begun again.
SETTLE_SECONDS = 60.0
WORKFLOWS = "headrace_scanner.workflows"
NEVER_RETRY: tuple[type[Exception], ...] = (
    ParserError,
    ValidationError,
    AuthenticationError,
    NotRetryable,
    *BUGS,
)
RETRY = RetryPolicy(retries=5, base=5.0)


def register(app: App, setup: Setup) -> None:
    """Add the tasks, the workflows and the event."""
    service = ScannerService.of(setup)
    _add_steps(app, service)
    _add_extraction(app, service)

    # Without a lane: it asks no shop, and must not hold up those who do.
    @app.task(SETTLE, queue="default", never_retry=BUGS)
    async def settle(ctx: Context, run: str | None = None) -> int:
        """Bring the row of a scan, or of all, into line with the job of its run."""
        agreement = Agreement(service)
        if run is None:
            return await agreement.settle_all()
        if not await agreement.settle_one(run):
            # The run has a failed step, and has not said so yet.
            asked = (await app.get(ctx.job_id)).created_at
            if (datetime.now(UTC) - asked).total_seconds() < SETTLE_SECONDS:
                raise Snooze(SETTLE_AGAIN)
        return 1

    app.add_schedule(settle, SETTLE_EVERY, name=SETTLE, allow_overlap=False)
    app.event_type(EVENT, ScanReport, summary="Products of a platform were scanned.")
    setup.load_workflows(WORKFLOWS)


def _add_steps(app: App, service: ScannerService) -> None:
    step: dict[str, Any] = {
        "queue": "default",
        "lane": Lane(STEP_LANE),
        "retry": RETRY,
        "never_retry": NEVER_RETRY,
        "timeout": STEP_SECONDS,
    }
    # The workflows name no lane for these steps: it is this one, with its rate.
    scan = {**step, "timeout": SCAN_SECONDS, "lane": Lane(STEP_LANE, rate=service.settings.rate)}

    def begin(ctx: Context, run: str) -> None:
        # Its time limit, and what it could not write, are written by another job.
        settle = app.tasks[SETTLE].options(queue=ctx.queue).job(run=run)
        ctx.then(settle, on="failed")

    @app.task(LOAD, **step)
    async def load(ctx: Context, run: str, platform: str, set: str, products: list[Any]) -> Loaded:
        """Find the products of a run."""
        begin(ctx, run)
        return await Steps(service, ctx, run, platform).load(set, products)

    @app.task(SCAN_BROWSER, isolate="process", tree_memory_limit=TREE_LIMIT, **scan)
    async def scan_browser(ctx: Context, run: str, platform: str, products: list[str]) -> BatchEnd:
        """Ask for products with a browser, in a process of its own."""
        begin(ctx, run)
        return await BatchScan(service, ctx, run, platform).all(products)

    @app.task(SCAN_API, **scan)
    async def scan_api(ctx: Context, run: str, platform: str, products: list[str]) -> BatchEnd:
        """Ask for products without a browser."""
        begin(ctx, run)
        return await BatchScan(service, ctx, run, platform).all(products)

    @app.task(COMPARE, **step)
    async def compare(ctx: Context, run: str, platform: str) -> Compared:
        """Compare what was seen with what is known."""
        begin(ctx, run)
        return await Steps(service, ctx, run, platform).compare()

    @app.task(WRITE, **step)
    async def write(ctx: Context, run: str, platform: str) -> int:
        """Write what changed."""
        begin(ctx, run)
        return await Steps(service, ctx, run, platform).write()

    @app.task(REPORT, **step)
    async def report(ctx: Context, run: str, platform: str) -> ScanReport:
        """Make the report of a run and complete its row."""
        begin(ctx, run)
        return await Steps(service, ctx, run, platform).report()


def _add_extraction(app: App, service: ScannerService) -> None:
    job: dict[str, Any] = {
        "queue": "extract",
        "lane": Lane(LANE),
        "retry": RETRY,
        "never_retry": NEVER_RETRY,
        "timeout": STEP_SECONDS,
    }

    @app.task("scanner.check_extraction", **job)
    async def check_extraction(type: str) -> str:
        """Refuse what is no type of extract job."""
        return check_type(type)

    @app.task("scanner.url_extraction", **job)
    async def url_extraction(ctx: Context, url: str, set: str = "") -> Extracted:
        """Read the product at an address, and keep it."""
        return await Extraction(service, ctx).url(url, set)

    @app.task("scanner.single_product", **job)
    async def single_product(ctx: Context, platform: str, product: str) -> Extracted:
        """Read one product of a platform."""
        return await Extraction(service, ctx).product(platform, product)

    @app.task("scanner.multi_platform", **job)
    async def multi_platform(ctx: Context, products: dict[str, str]) -> Offers:
        """Read the same product on many platforms: `{"kurly": "5012", "musinsa": "3381"}`."""
        return await Extraction(service, ctx).everywhere(products)
