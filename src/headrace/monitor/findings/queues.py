"""Queues with pending jobs that nothing starts: paused, without a worker, or of unknown tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.model.views import Finding, FindingTarget, QueueView
from headrace.monitor.why import knows, serves
from headrace.monitor.words import paused_words, plural

if TYPE_CHECKING:
    from headrace.monitor.findings.facts import Facts

SUBJECT = "queues"


def findings(facts: Facts) -> Iterator[Finding]:
    """Return what is wrong with queues."""
    for queue in facts.queues:
        pending = queue.ready + queue.waiting
        if pending:
            told = f"queue {queue.name!r} has {plural(pending, 'pending job')}"
            if queue.paused:
                yield _paused(facts, queue, told)
            yield from _unserved(facts, queue, told)


def _paused(facts: Facts, queue: QueueView, told: str) -> Finding:
    return Finding(
        "warning",
        SUBJECT,
        f"{told} and {paused_words(queue, facts.now) or 'is paused'}",
        f"Resume it: headrace queues resume {queue.name}",
        kind="queue.paused",
        name=queue.name,
        since=queue.paused_at,
        action="resume",
        target=FindingTarget("queue", {"name": queue.name}),
    )


def _unserved(facts: Facts, queue: QueueView, told: str) -> Iterator[Finding]:
    serving = [worker for worker in facts.workers if serves(worker, queue.name)]
    if not serving:
        yield Finding(
            "error",
            SUBJECT,
            f"{told}, but no worker serves it",
            f"Start one: headrace worker --queues {queue.name} --app …",
            kind="queue.no-worker",
            name=queue.name,
            since=facts.before(queue.oldest_age),
            target=FindingTarget("queue", {"name": queue.name}),
        )
        return
    for task, number in sorted(queue.reserved.items()):
        if not any(knows(worker, task) for worker in serving):
            stuck = f"queue {queue.name!r} has {plural(number, 'pending job')} of task {task!r}"
            yield Finding(
                "error",
                SUBJECT,
                f"{stuck}, which no worker knows",
                "Start a worker whose --app registers it (and that has the keys, if it is "
                "encrypted), or cancel them: "
                f"headrace jobs cancel --queue {queue.name} --task {task}",
                kind="task.unknown",
                name=f"{queue.name}/{task}",
                action="cancel",
                target=FindingTarget(
                    "jobs", {"queue": queue.name, "task": task, "status": "pending"}
                ),
            )
