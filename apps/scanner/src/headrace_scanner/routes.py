"""The HTTP routes of the bundle, below `/scanner`. Runs are also begun by
`POST /api/v2/workflows/execute`, as those of any workflow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from starlette.responses import Response

from headrace import ArtifactNotFound, ValidationError
from headrace.bundles import Refusal, Request, Routes, Setup
from headrace_scanner.imports import LARGEST_FILE, ProductRow, read_file
from headrace_scanner.platforms import NAMES
from headrace_scanner.reading.addresses import shown
from headrace_scanner.scanner import Scanner
from headrace_scanner.service import ScannerService
from headrace_scanner.store.products import Imported
from headrace_scanner.store.records import ScanStatus
from headrace_scanner.views import Begun, ScanDetail

_JOB = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MOST = 500
HIGHEST_PRIORITY = 1_000_000
REPORT_HEADERS = {
    # A report runs no script, asks nobody, and is in no frame of others.
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'self'",
    "Cache-Control": "private, no-store",
    "X-Content-Type-Options": "nosniff",
}


class NewProducts(msgspec.Struct, forbid_unknown_fields=True):
    """The body of `PUT /scanner/sets/{name}`."""

    products: list[ProductRow]
    replace: bool = False


class NewScan(msgspec.Struct, forbid_unknown_fields=True):
    """The body of `POST /scanner/scans`: a set, some products (ids or URLs), or neither for all."""

    platform: str
    set: str = ""
    products: list[str] = []
    priority: int | None = None


class NewExtraction(msgspec.Struct, forbid_unknown_fields=True):
    """The body of `POST /scanner/extractions`."""

    type: str
    url: str = ""
    platform: str = ""
    product: str = ""
    products: dict[str, str] = {}
    set: str = ""
    priority: int | None = None


def routes(setup: Setup) -> Routes:
    """Return the routes."""
    routes = Routes()
    scanner = Scanner(ScannerService.of(setup))
    _add_products(routes, scanner)
    _add_scans(routes, scanner)
    _add_views(routes, scanner)
    return routes


def _add_products(routes: Routes, scanner: Scanner) -> None:
    @routes.put("/sets/{name}", scope="write", action="products.import", limit=LARGEST_FILE)
    async def put(name: str, body: NewProducts, request: Request) -> Imported:
        """Import products into a set, all or nothing."""
        with _refusing("products"):
            imported = await scanner.add(body.products, name, replace=body.replace)
        request.note(name, new=imported.new, known=imported.known)
        return imported

    @routes.post("/sets/{name}/file", scope="write", action="products.import", limit=LARGEST_FILE)
    async def upload(name: str, request: Request, replace: bool = False) -> Imported:
        """Import a file into a set, CSV or JSON, as the body of the request."""
        content = await request.body()
        with _refusing("file"):
            imported = await scanner.add(read_file("the file", content), name, replace=replace)
        request.note(name, new=imported.new, known=imported.known)
        return imported

    @routes.get("/sets", scope="read")
    async def sets() -> dict[str, Any]:
        """List product sets."""
        return {"sets": await scanner.sets()}

    @routes.delete("/sets/{name}", scope="write", action="products.remove_set")
    async def remove(name: str, request: Request) -> None:
        """Delete a set; its products stay."""
        if not await scanner.remove_set(name):
            raise Refusal(404, f"there is no set {shown(name)}", word="set-not-found")
        request.note(name)

    @routes.get("/products", scope="read")
    async def products(
        platform: str | None = None,
        set: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> dict[str, Any]:
        """List products as they were last seen."""
        found, following = await scanner.products(
            platform=_platform(platform), set_name=set or None, limit=_checked(limit), after=cursor
        )
        return {"products": found, "next": following}


def _add_scans(routes: Routes, scanner: Scanner) -> None:
    @routes.post("/scans", scope="write", status=202, action="scan.begin")
    async def begin(body: NewScan, request: Request) -> Begun:
        """Begin a run on a platform. It waits for those before it."""
        with _refusing("platform"):
            begun = await scanner.scan(
                body.platform,
                set_name=body.set,
                products=body.products,
                priority=_priority(body.priority),
            )
        request.note(begun.job_id)
        return begun

    @routes.post("/extractions", scope="write", status=202, action="extraction.begin")
    async def extract(body: NewExtraction, request: Request) -> Begun:
        """Begin an extract job: url_extraction, single_product or multi_platform."""
        fields = msgspec.structs.asdict(body)
        kind, priority = fields.pop("type"), _priority(fields.pop("priority"))
        with _refusing("type"):
            begun = await scanner.extract(kind, fields, priority=priority)
        request.note(begun.job_id)
        return begun

    @routes.get("/scans", scope="read")
    async def scans(
        platform: str | None = None,
        status: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> dict[str, Any]:
        """List scans, the newest first."""
        wanted = None
        if status:
            if status not in list(ScanStatus):
                known = ", ".join(ScanStatus)
                raise Refusal(422, f"status is {shown(status)}; use one of {known}", field="status")
            wanted = ScanStatus(status)
        found, following = await scanner.scans(
            platform=_platform(platform), status=wanted, limit=_checked(limit), after=cursor
        )
        return {"scans": found, "next": following}

    @routes.get("/scans/{scan_id}", scope="read")
    async def show(scan_id: str) -> ScanDetail:
        """Return a scan with what it has seen. Its id is that of its run."""
        found = await scanner.get(scan_id) if _JOB.fullmatch(scan_id) else None
        if found is None:
            raise Refusal(404, f"there is no scan {shown(scan_id)}", word="scan-not-found")
        return found

    @routes.get("/scans/{scan_id}/report", scope="read")
    async def report(scan_id: str) -> Response:
        """Return the report of a scan (HTML)."""
        try:
            content = await scanner.report(scan_id if _JOB.fullmatch(scan_id) else "")
        except ArtifactNotFound:
            raise Refusal(
                404, f"scan {shown(scan_id)} has no report (yet)", word="report-not-found"
            ) from None
        return Response(content, media_type="text/html", headers=REPORT_HEADERS)


def _add_views(routes: Routes, scanner: Scanner) -> None:
    @routes.get("/platforms", scope="read")
    async def platforms() -> dict[str, Any]:
        """Return the eight platforms: who runs, who waits, how the last scan ended."""
        return {"platforms": await scanner.platforms()}

    @routes.get("/changes", scope="read")
    async def changes(
        platform: str | None = None, scan: str | None = None, limit: int = 50
    ) -> dict[str, Any]:
        """List what changed, the newest first."""
        found = await scanner.changes(
            platform=_platform(platform), scan_id=scan or None, limit=_checked(limit)
        )
        return {"changes": found}


@contextmanager
def _refusing(field: str) -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        raise Refusal(422, str(error), field=field) from None


def _platform(given: str | None) -> str | None:
    if not given:
        return None
    if given not in NAMES:
        known = ", ".join(NAMES)
        raise Refusal(422, f"platform is {shown(given)}; use one of {known}", field="platform")
    return given


def _priority(given: int | None) -> int | None:
    if given is not None and abs(given) > HIGHEST_PRIORITY:
        raise Refusal(
            422, f"priority is {given}; give at most {HIGHEST_PRIORITY}", field="priority"
        )
    return given


def _checked(limit: int) -> int:
    if not 1 <= limit <= MOST:
        raise Refusal(422, f"limit is {limit}; give 1 to {MOST}", field="limit")
    return limit
