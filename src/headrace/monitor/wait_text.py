"""What a suspended job waits for, in words."""

from __future__ import annotations

from headrace.engine.base import Viewing
from headrace.model.durable.awaited import Awaited, AwaitedChildren, AwaitedEvent
from headrace.model.job import Job, JobFilter
from headrace.model.status import ACTIVE

# Beyond this many, nobody needs to know exactly.
MOST = 1_000


def waits_for(awaits: tuple[Awaited, ...]) -> str:
    """E.g. "event 'approved' or children of group 'pages'". Empty if it waits for nothing."""
    return " or ".join(map(_one, awaits))


async def why_suspended(engine: Viewing, job: Job) -> list[str]:
    """A sentence for each thing that a job waits for."""
    return [await _sentence(engine, job, each) for each in job.awaits]


def _one(awaited: Awaited) -> str:
    match awaited:
        case AwaitedEvent(name=name):
            return f"event {name!r}"
        case AwaitedChildren(group=group, left=left):
            which = "its children" if group is None else f"children of group {group!r}"
            return which if not left else f"{which}, until {left} are left"


async def _sentence(engine: Viewing, job: Job, awaited: Awaited) -> str:
    match awaited:
        case AwaitedEvent(name=name):
            return (
                f"It waits for event {name!r}. "
                f"Deliver it with: headrace jobs signal {job.id} {name!r}"
            )
        case AwaitedChildren(group=group, left=left):
            unfinished = JobFilter(statuses=tuple(sorted(ACTIVE)), parent=job.id, group=group)
            page = await engine.list_jobs(unfinished, limit=MOST)
            count = f"{len(page.jobs)}" if page.cursor is None else f"more than {MOST}"
            noun = "child" if count == "1" else "children"
            named = "" if group is None else f" of group {group!r}"
            until = f", until {left} are left" if left else ""
            return f"It waits for {count} {noun}{named}{until}."
