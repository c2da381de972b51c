"""Queues with pending jobs that nothing starts: paused, held, without a worker, or of unknown
tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.model.limits.rate import RateView
from headrace.model.views import Finding, FindingTarget, QueueView
from headrace.monitor.rates import RatesReader, with_holds
from headrace.monitor.why import knows, serves
from headrace.monitor.words import held_words, paused_words, plural

if TYPE_CHECKING:
    from headrace.monitor.findings.facts import Facts

SUBJECT = "queues"
# Whether a queue is held is asked once a job has waited for so long, for the oldest so many.
HELD_SECONDS = 60.0
MOST_HELD = 20


async def queue_holds(engine: RatesReader, queues: Sequence[QueueView]) -> Mapping[str, RateView]:
    """Return the queues that are held and have had pending jobs for a while, by name."""
    old = [each for each in queues if (each.oldest_age or 0.0) >= HELD_SECONDS]
    old.sort(key=lambda each: -(each.oldest_age or 0.0))
    held = {}
    for queue in old[:MOST_HELD]:
        for key in await with_holds(engine, await engine.rates(queue=queue.name, lane="")):
            if key.held_until is not None:
                held[queue.name] = key
    return held


def findings(facts: Facts) -> Iterator[Finding]:
    """Return what is wrong with queues."""
    for queue in facts.queues:
        pending = queue.ready + queue.waiting
        if pending:
            told = f"queue {queue.name!r} has {plural(pending, 'pending job')}"
            if queue.paused:
                yield _paused(facts, queue, told)
            elif queue.name in facts.holds:
                yield _held(facts.holds[queue.name], told)
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


def _held(key: RateView, told: str) -> Finding:
    return Finding(
        "warning",
        SUBJECT,
        f"{told} and is {held_words(key)}",
        f"Let them start: headrace rates release {key.queue}",
        kind="queue.held",
        name=key.queue,
        action="release",
        target=FindingTarget("queue", {"name": key.queue}),
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
