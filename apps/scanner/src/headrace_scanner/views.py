"""Platforms, products, scans and changes as the API returns them. No I/O."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from headrace import Job
from headrace_scanner.store.records import Observation, Product, Scan


class RunState(msgspec.Struct, kw_only=True):
    """A run, or an extract job, that runs or waits on a platform."""

    job_id: str
    name: str
    """The workflow, or the task of an extract job."""
    set: str
    priority: int
    since: datetime
    """When it began; of one that waits, when it was asked for."""
    step: str | None = None
    done: int = 0
    products: int = 0


class PlatformView(msgspec.Struct, kw_only=True):
    """A platform: who runs, who waits, and how the last scans ended."""

    platform: str
    title: str
    reader: str
    workflow: str
    products: int
    running: RunState | None
    waiting: list[RunState]
    """The first of those that wait, in their order."""
    waiting_count: int
    last: ScanView | None


class ScanView(msgspec.Struct, kw_only=True):
    """A scan."""

    scan_id: str
    job_id: str
    platform: str
    set: str
    status: str
    error: str | None
    products: int
    done: int
    seen: int
    changed: int
    blocked: int
    failed: int
    report: bool
    created_at: datetime
    updated_at: datetime


class ScanDetail(ScanView, kw_only=True):
    """A scan with what it has seen; those that could not be seen come first."""

    items: list[SeenView] = []


class SeenView(msgspec.Struct, kw_only=True):
    """A product in a scan."""

    product_id: str
    external_id: str
    name: str | None
    price: float | None
    sale_status: str | None
    outcome: str
    error: str | None


class ProductView(msgspec.Struct, kw_only=True):
    """A product as it was last seen."""

    product_id: str
    platform: str
    external_id: str
    url: str
    name: str | None
    price: float | None
    sale_status: str | None
    scan_id: str | None
    seen_at: datetime | None


class ChangeView(msgspec.Struct, kw_only=True):
    """A change of a product."""

    scan_id: str
    product_id: str
    platform: str
    external_id: str
    name: str | None
    url: str
    field: str
    before: str
    after: str
    at: datetime


class Begun(msgspec.Struct, kw_only=True):
    """A run that was asked for."""

    job_id: str
    platform: str
    workflow: str


def product_view(product: Product) -> ProductView:
    """Return a product as the API does."""
    return ProductView(
        product_id=product.product_id,
        platform=product.platform,
        external_id=product.external_id,
        url=product.url,
        name=product.name,
        price=product.price,
        sale_status=product.sale_status,
        scan_id=product.scan_id,
        seen_at=None if product.seen_at is None else _time(product.seen_at),
    )


def scan_fields(scan: Scan, done: int) -> dict[str, Any]:
    """Return the fields of a `ScanView`."""
    return {
        "scan_id": scan.scan_id,
        "job_id": scan.scan_id,
        "platform": scan.platform,
        "set": scan.set_name,
        "status": str(scan.status),
        "error": scan.error,
        "products": scan.products,
        "done": done,
        "seen": scan.seen,
        "changed": scan.changed,
        "blocked": scan.blocked,
        "failed": scan.failed,
        "report": scan.report is not None,
        "created_at": _time(scan.created_at),
        "updated_at": _time(scan.updated_at),
    }


def seen_view(product: Product, seen: Observation) -> SeenView:
    """Return a product of a scan as the API does."""
    return SeenView(
        product_id=product.product_id,
        external_id=product.external_id,
        name=seen.name or product.name,
        price=seen.price,
        sale_status=seen.sale_status,
        outcome=str(seen.outcome),
        error=seen.error,
    )


def change_view(row: dict[str, Any]) -> ChangeView:
    """Return a change as the API does."""
    return ChangeView(**{**row, "at": _time(row["at"])})


def run_state(job: Job, step: str | None, scan: Scan | None, done: int) -> RunState:
    """Return a run as the API does."""
    params = job.args.get("params", job.args)
    since = job.started_at or (job.created_at if scan is None else _time(scan.created_at))
    return RunState(
        job_id=job.id,
        name=job.meta.get("workflow_id") or job.task,
        set=str(params.get("set", "")),
        priority=job.priority,
        since=since,
        step=step,
        done=done,
        products=0 if scan is None else scan.products,
    )


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
