"""Bulk actions: a preview before, and progress while one runs."""

from __future__ import annotations

from typing import cast

from headrace.admin.bulk import preview
from headrace.api_types.bulk import BulkAction
from headrace.server.dashboard.jobs.query import FILTERS, JobQuery
from headrace.server.dashboard.page import Shown, page
from headrace.server.dashboard.visit import Visit
from headrace.server.http.problems import invalid
from headrace.server.routes.bulk import as_seen, seen_bulk

ACTIONS = ("retry", "cancel")
# Above this many jobs a person has to type their number.
SURE = 100


def chosen_action(text: str | None) -> BulkAction:
    """Return the action of this name."""
    if text not in ACTIONS:
        raise invalid(f"action must be one of {', '.join(ACTIONS)}", field="action")
    return cast("BulkAction", text)


@page("/jobs/bulk", title="Bulk action", scope="write", query=(*FILTERS, "action"))
async def bulk_preview(visit: Visit) -> Shown:
    """Show what an action would change, before it does."""
    query, action = JobQuery(visit), chosen_action(visit.query.get("action"))
    if not query.given:
        raise invalid("an action on every job there is needs a filter", field="filter")
    visit.caller.check_for_all("a bulk action")
    await visit.app.open()
    counted = await preview(
        visit.app.engine, action, query.wanted, query.fingerprint,
        seen=visit.reach.seen, runs=not visit.caller.queues,
    )  # fmt: skip
    samples = await visit.rows([each.to_job() for each in counted.samples])
    return Shown(
        "jobs/bulk_preview.html",
        title=f"{action.capitalize()} all that match",
        action=action,
        query=query,
        counted=counted,
        samples=samples,
        sure=SURE,
        back=visit.url("/jobs", **query.fields),
    )


@page("/bulk", title="Bulk actions")
async def bulk_actions(visit: Visit) -> Shown:
    """Show those that servers do or have done."""
    found = await visit.app.bulk_actions()
    return Shown("jobs/bulk.html", actions=await as_seen(visit.service, visit.caller, found))


@page("/bulk/{bulk_id}", title="Bulk action")
async def bulk_action(visit: Visit) -> Shown:
    """Show one: how far it is, and what it has changed."""
    found = await seen_bulk(visit.service, visit.caller, visit.params["bulk_id"])
    first = await visit.app.engine.get(found.ids)
    return Shown(
        "jobs/bulk_action.html",
        title=f"{found.action.capitalize()} in bulk",
        bulk=found,
        jobs=found.jobs.partition("?")[2],
        first=await visit.reach.visible(first),
    )
