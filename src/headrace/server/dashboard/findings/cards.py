"""What is wrong, as cards: where people see more, and what they can do about it here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.api_types.requests import Scope
from headrace.model.views import Finding
from headrace.server.dashboard.findings.links import link
from headrace.server.dashboard.visit import Visit

# What is told for a while although nobody has to do anything.
TOLD_ONLY = {("worker.lost", "warning")}
# Up to a semicolon that is not in quotes: what is in them may be the name of a lane.
_COMMAND = re.compile(r"""(headrace (?:[^;'"]|'[^']*'|"[^"]*")+)""")


class FindingButton(msgspec.Struct, frozen=True, kw_only=True):
    """What mends it. With a `question` it is a form that asks first, else a link to a preview."""

    label: str
    link: str
    scope: Scope
    question: str | None = None
    fields: dict[str, str] = {}
    danger: bool = False


class FindingCard(msgspec.Struct, frozen=True, kw_only=True):
    """A finding as it is shown. `remedy` alternates between words and lines for the shell."""

    id: str
    finding: Finding
    link: str | None
    remedy: Sequence[tuple[str, str]]
    button: FindingButton | None = None

    @property
    def sentence(self) -> str:
        """What is wrong, as a sentence."""
        detail = self.finding.detail
        return f"{detail[:1].upper()}{detail[1:]}."

    @property
    def needs_somebody(self) -> bool:
        """Return whether there is something to do."""
        return (self.finding.kind, self.finding.level) not in TOLD_ONLY


def cards(visit: Visit, found: Sequence[Finding]) -> list[FindingCard]:
    """Return a card for each finding, those that need somebody first."""
    made = [
        FindingCard(
            # Stays the same while it lasts, so that what is open on the page stays open.
            id=f"{each.kind}-{each.name}" if each.kind else f"{each.subject}-{number}",
            finding=each,
            link=link(visit, each),
            remedy=remedy_of(each.remedy),
            button=button_of(visit, each),
        )
        for number, each in enumerate(found)
        if each.level != "ok"
    ]
    return sorted(made, key=lambda card: not card.needs_somebody)


def health(made: Sequence[FindingCard]) -> str:
    """Return one sentence: how things are."""
    needy = sum(card.needs_somebody for card in made)
    if needy:
        return "1 thing needs you." if needy == 1 else f"{needy} things need you."
    return "All is well. What was lost is told below for a while." if made else "All is well."


def button_of(visit: Visit, finding: Finding) -> FindingButton | None:
    """Return what mends it here, where something does and the caller may."""
    button = _button(visit, finding)
    return button if button is not None and visit.may(button.scope) else None


def _button(visit: Visit, finding: Finding) -> FindingButton | None:  # noqa: PLR0911 - one for each kind
    query = {} if finding.target is None else finding.target.query
    match finding.kind:
        case "queue.paused" | "queue.held":
            return _start_again(visit, finding)
        case "lane.blocked":
            return FindingButton(
                label="Cancel the job that holds it",
                link=visit.url("/lanes/cancel-holder"),
                scope="write",
                question=f"Cancel job {query['id']}?",
                fields={"id": query["id"]},
                danger=True,
            )
        case "breaker.open":
            return FindingButton(
                label="Close it",
                link=visit.url("/breakers/close"),
                scope="admin",
                question=f"Close the breaker of {finding.name}, and start its jobs again?",
                fields={"queue": query["queue"], "lane": query["lane"]},
            )
        case "failures.spike":
            failed: dict[str, Any] = {"status": ["failed", "timeout"], **query}
            to = visit.url("/jobs/bulk", action="retry", **failed)
            return FindingButton(label="Retry them …", link=to, scope="write")
        case "task.unknown":
            to = visit.url("/jobs/bulk", action="cancel", **query)
            return FindingButton(label="Cancel them …", link=to, scope="write", danger=True)
        case "schedule.missed" if finding.action == "trigger":
            return FindingButton(
                label="Run it now",
                link=visit.url("/schedules", finding.name, "trigger"),
                scope="admin",
                question=f"Run schedule {finding.name} once now?",
            )
    return None


def _start_again(visit: Visit, finding: Finding) -> FindingButton:
    if finding.kind == "queue.paused":
        return FindingButton(
            label="Resume",
            link=visit.url("/queues", finding.name, "resume"),
            scope="admin",
            question=f"Resume queue {finding.name}?",
        )
    return FindingButton(
        label="Release",
        link=visit.url("/rates/release"),
        scope="admin",
        question=f"Let jobs of queue {finding.name} start again?",
        fields={"queue": finding.name, "lane": ""},
    )


def remedy_of(text: str) -> list[tuple[str, str]]:
    """Return a remedy as pairs of words and a line for the shell; either may be empty."""
    parts = _COMMAND.split(text)
    pairs = zip(parts[::2], [*parts[1::2], ""], strict=True)
    said = [(_said(words), line.strip(" .")) for words, line in pairs]
    return [pair for pair in said if any(pair)]


def _said(words: str) -> str:
    words = words.strip("; ")
    return words[:1].upper() + words[1:]
