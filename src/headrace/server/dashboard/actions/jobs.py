"""Change selected jobs, or all that match."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec
from starlette.datastructures import QueryParams

from headrace import job_tree
from headrace.api_types.bulk import BulkView
from headrace.model.ids import parse_id
from headrace.server.dashboard.action import Act, Done, action
from headrace.server.dashboard.jobs.query import FILTERS, JobQuery
from headrace.server.dashboard.pages.jobs.bulk import SURE, chosen_action
from headrace.server.http.problems import invalid
from headrace.server.routes.bulk import begin, changeable, store

REASON = "cancelled from the dashboard"
MOST_SELECTED = 1_000
SHOWN_IDS = 20


@action("/jobs/selected", scope="write")
async def change_selected(act: Act) -> Done:
    """Retry or cancel the jobs whose rows are ticked."""
    wanted = chosen_action(act.form.get("action"))
    ids = [parse_id(each) for each in act.form.getlist("id")[:MOST_SELECTED]]
    if not ids:
        return Done("No job was selected: tick some rows first.")
    await act.app.open()
    engine = act.app.engine
    jobs = [act.reach.check_own(job) for job in await act.reach.visible(await engine.get(ids))]
    if wanted == "cancel":
        changed = list(await job_tree.cancel(engine, [job.id for job in jobs], REASON))
    else:
        if act.caller.user is not None:
            await act.reach.check_retry(*jobs)
        changed = list(await act.app.rerun(jobs, queues=act.caller.queues))
    if changed:
        shown = changed[:SHOWN_IDS]
        await act.changed(f"jobs.{wanted}", f"{len(changed)} jobs", first_ids=shown)
    done = "cancelled, or asked to stop" if wanted == "cancel" else "run again"
    left = len(ids) - len(changed)
    rest = f" {left} could not be: their status does not allow it." if left > 0 else ""
    return Done(f"{len(changed)} of {len(ids)} jobs are {done}.{rest}")


@action("/jobs/bulk", scope="write")
async def start_bulk(act: Act) -> Done:
    """Begin an action on all jobs that match, as the preview has counted them."""
    act.caller.check_for_all("a bulk action")
    wanted = chosen_action(act.form.get("action"))
    act.query = QueryParams([pair for pair in act.form.multi_items() if pair[0] in FILTERS])
    query = JobQuery(act)
    matched, complete = _number(act, "matched"), act.form.get("complete") == "True"
    if (matched > SURE or not complete) and _number(act, "sure") != matched:
        raise invalid(f"type {matched} to confirm that so many jobs are meant", field="sure")
    try:
        cutoff = datetime.fromisoformat(act.form.get("cutoff", ""))
    except ValueError:
        raise invalid("the preview is missing; open it again", field="cutoff") from None
    made = await store(
        act.service, act.caller, wanted, query.wanted, query.fingerprint,
        cutoff=cutoff, reason=REASON,
    )  # fmt: skip
    return Done("It runs. This page shows how far it is.", to=act.url("/bulk", made.id))


@action("/bulk/{bulk_id}/stop", scope="write")
async def stop_bulk(act: Act) -> Done:
    """Stop a bulk action."""
    await _change_bulk(act, "bulk.stop", act.app.stop_bulk)
    return Done("It is stopped. What it has changed stays so.")


@action("/bulk/{bulk_id}/resume", scope="write")
async def resume_bulk(act: Act) -> Done:
    """Go on with a bulk action."""
    await _change_bulk(act, "bulk.resume", act.app.resume_bulk)
    return Done("It goes on.")


async def _change_bulk(act: Act, action: str, change: Callable[[str], Awaitable[BulkView]]) -> None:
    found = await changeable(act.service, act.caller, act.params["bulk_id"])
    await change(found.id)
    await act.changed(action, found.id)
    begin(act.service)


def _number(act: Act, name: str) -> int:
    try:
        return msgspec.convert(act.form.get(name, "").replace(",", ""), int, strict=False)
    except msgspec.ValidationError:
        return -1
