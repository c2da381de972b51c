"""Findings on pages: which concern what, and where each leads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from headrace.model.views import Finding
from headrace.server.dashboard.page import PAGES
from headrace.server.dashboard.visit import Visit


class ShownFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding as a notice: its sentence with what to do, and a link to what it is about."""

    text: str
    kind: str
    link: str | None


def of_queue(found: Iterable[Finding], queue: str) -> list[Finding]:
    """Return the findings about a queue, its lanes and its tasks."""
    kinds = ("queue.", "lane.", "task.")
    return [
        each
        for each in found
        if each.kind.startswith(kinds) and each.name.partition("/")[0] == queue
    ]


def shown(visit: Visit, found: Iterable[Finding]) -> Sequence[ShownFinding]:
    """Return findings as notices of a page."""
    return [
        ShownFinding(
            text=f"{each.detail[:1].upper()}{each.detail[1:]}. {each.remedy}",
            kind="problem" if each.level == "error" else "warning",
            link=link(visit, each),
        )
        for each in found
    ]


def link(visit: Visit, finding: Finding) -> str | None:
    """Return where people see more of a finding; None if that is the page they are on."""
    target = finding.target
    if target is None:
        return None
    match target.page, target.query:
        case "queue", {"name": name}:
            found = visit.url("/queues", name)
        case "job", {"id": job_id}:
            found = visit.url("/jobs", job_id)
        case "schedules", {"name": name}:
            found = visit.url("/schedules", name)
        case page, query:
            # A page that does not know a parameter is about all of them.
            known = PAGES[f"/{page}"].query if f"/{page}" in PAGES else ()
            found = visit.url(
                f"/{page}", **{name: value for name, value in query.items() if name in known}
            )
    return None if found == visit.url(visit.path) else found
