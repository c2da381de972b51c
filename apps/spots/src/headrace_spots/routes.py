"""The HTTP routes of the bundle, below `/spots`."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from starlette.responses import Response

from headrace import ArtifactNotFound, ValidationError
from headrace.bundles import Refusal, Request, Routes, Setup
from headrace_spots.crawling.urls import shown
from headrace_spots.service import SpotsService
from headrace_spots.shops import Shops
from headrace_spots.store.records import RunStatus
from headrace_spots.store.repository import LABELS
from headrace_spots.views import AcceptedRun, ReviewHit, RunView, StoreDetail

_RUN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_STORE = re.compile(r"[0-9a-f]{16}")
MOST = 500
REPORT_HEADERS = {
    # A report runs no script, asks nobody, and is in no frame of others.
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'self'",
    "Cache-Control": "private, no-store",
    "X-Content-Type-Options": "nosniff",
}


class NewRun(msgspec.Struct, forbid_unknown_fields=True):
    """The body of `POST /spots/jobs`."""

    url: str


class NewSchedule(msgspec.Struct, forbid_unknown_fields=True):
    """The body of `PUT /spots/stores/{store_id}/schedule`."""

    cron: str
    tz: str = "UTC"


def routes(setup: Setup) -> Routes:
    """Return the routes."""
    routes = Routes()
    shops = Shops(SpotsService.of(setup))
    _add_runs(routes, shops)
    _add_stores(routes, shops)
    _add_search(routes, shops)
    return routes


def _add_runs(routes: Routes, shops: Shops) -> None:
    @routes.post("/jobs", scope="write", status=202, action="shop.add")
    async def add(body: NewRun, request: Request) -> AcceptedRun:
        """Have a shop analysed. Its run has the id of its job."""
        try:
            accepted = await shops.add(body.url, owner=request.user)
        except ValidationError as error:
            raise Refusal(422, str(error), field="url") from None
        request.note(accepted.job_id)
        return accepted

    @routes.get("/jobs", scope="read")
    async def find(
        store: str | None = None,
        status: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> dict[str, Any]:
        """List runs, the newest first."""
        wanted = None if not status else _one_of("status", status, RunStatus)
        found, following = await shops.runs(
            store_id=store or None, status=wanted, limit=_checked(limit), after=cursor
        )
        return {"jobs": found, "next": following}

    @routes.get("/jobs/{job_id}", scope="read")
    async def show(job_id: str) -> RunView:
        """Return a run: what its row says, and what the queue does."""
        found: RunView = _found(await shops.get(_known(job_id, _RUN, "run")), job_id, "run")
        return found

    @routes.get("/jobs/{job_id}/report", scope="read")
    async def report(job_id: str) -> Response:
        """Return the report of a run (HTML)."""
        try:
            content = await shops.report(_known(job_id, _RUN, "run"))
        except ArtifactNotFound:
            raise Refusal(
                404, f"run {shown(job_id)} has no report (yet)", word="report-not-found"
            ) from None
        return Response(content, media_type="text/html", headers=REPORT_HEADERS)


def _add_stores(routes: Routes, shops: Shops) -> None:
    @routes.get("/stores", scope="read")
    async def stores(limit: int = 50, cursor: str | None = None) -> dict[str, Any]:
        """List shops, the newest first."""
        found, following = await shops.stores(limit=_checked(limit), after=cursor)
        return {"stores": found, "next": following}

    @routes.get("/stores/{store_id}", scope="read")
    async def store(store_id: str) -> StoreDetail:
        """Return a shop with its analysis and its runs."""
        found: StoreDetail = _shop(await shops.store(_known(store_id, _STORE, "shop")), store_id)
        return found

    @routes.delete("/stores/{store_id}", scope="write", action="shop.remove")
    async def remove(store_id: str, request: Request) -> None:
        """Delete a shop with everything that was found about it."""
        _shop(await shops.remove(_known(store_id, _STORE, "shop")) or None, store_id)
        request.note(store_id)

    @routes.get("/stores/{store_id}/reviews", scope="read")
    async def reviews(
        store_id: str, label: str | None = None, limit: int = 50, offset: int = 0
    ) -> dict[str, Any]:
        """List the reviews of a shop, the newest first."""
        wanted = None if not label else _one_of("label", label, LABELS)
        if not 0 <= offset <= 1_000_000:
            raise Refusal(422, f"offset is {offset}; give 0 to 1000000", field="offset")
        found = await shops.reviews(
            _known(store_id, _STORE, "shop"), label=wanted, limit=_checked(limit), offset=offset
        )
        return {"reviews": found}

    @routes.put("/stores/{store_id}/schedule", scope="write", action="shop.schedule")
    async def schedule(store_id: str, body: NewSchedule, request: Request) -> dict[str, Any]:
        """Have a shop analysed again by the clock."""
        _shop(await shops.store(_known(store_id, _STORE, "shop")), store_id)
        found = await shops.schedule(store_id, body.cron, body.tz)
        request.note(store_id)
        return found

    @routes.delete("/stores/{store_id}/schedule", scope="write", action="shop.unschedule")
    async def unschedule(store_id: str, request: Request) -> None:
        """End that."""
        if not await shops.unschedule(_known(store_id, _STORE, "shop")):
            raise Refusal(404, f"shop {shown(store_id)} has no schedule", word="schedule-not-found")
        request.note(store_id)


def _add_search(routes: Routes, shops: Shops) -> None:
    @routes.get("/search", scope="read")
    async def search(q: str, store: str | None = None, k: int = 10) -> dict[str, list[ReviewHit]]:
        """Return the reviews that answer a question best."""
        return {"hits": await shops.search(q, store or None, k)}


def _one_of(field: str, text: str, known: Any) -> Any:
    for each in known:
        if text == each:
            return each
    raise Refusal(422, f"{field} is {shown(text)}; use one of {', '.join(known)}", field=field)


def _checked(limit: int) -> int:
    if not 1 <= limit <= MOST:
        raise Refusal(422, f"limit is {limit}; give 1 to {MOST}", field="limit")
    return limit


def _known(given: str, form: re.Pattern[str], what: str) -> str:
    """Return an id, or refuse what cannot be one: databases do not take every text."""
    if not form.fullmatch(given):
        _found(None, given, what)
    return given


def _shop(found: Any, store_id: str) -> Any:
    return _found(found, store_id, "shop")


def _found(found: Any, given: str, what: str) -> Any:
    if found is None:
        raise Refusal(404, f"there is no {what} {shown(given)}", word=f"{what}-not-found")
    return found
