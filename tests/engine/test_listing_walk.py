"""Random filters over random jobs: lists and counts against the jobs themselves, as a model."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from headrace.clock import Clock
from headrace.engine.base import Engine
from headrace.model.job import Job, JobFilter
from headrace.model.outcome import Completed, Failed, Failure, Outcome, Retry, TimedOut
from headrace.model.status import Status
from tests.support.verbs import a_worker, claim, enqueue, settle

QUEUES = ("a", "b", "c")
TASKS = ("t", "u")
ERRORS = ("ValueError", "KeyError")


def outcome(chance: random.Random) -> Outcome:
    failure = Failure(type=chance.choice(ERRORS), message="it broke")
    outcomes: list[Outcome] = [
        Completed(b"1"), Failed(failure), TimedOut(failure), Retry(failure, 0.0),
        Retry(failure, 600.0),
    ]  # fmt: skip
    return chance.choice(outcomes)


async def some_jobs(engine: Engine, clock: Clock, chance: random.Random, steps: int) -> list[str]:
    """Jobs in every state, by every way into it."""
    workers = [await a_worker(engine, name) for name in ("first", "second")]
    ids: list[str] = []
    running: list[Any] = []
    for number in range(steps):
        match chance.randrange(10):
            case 0 | 1 | 2 | 3:
                fields: dict[str, Any] = {
                    "queue": chance.choice(QUEUES), "task": chance.choice(TASKS)
                }  # fmt: skip
                if chance.random() < 0.3:
                    fields["lane"] = chance.choice("lm")
                if chance.random() < 0.3:
                    fields["key"] = f"k{number % 3}"
                if chance.random() < 0.2:
                    fields["delay"] = chance.choice([30.0, 3600.0])
                if ids and chance.random() < 0.3:
                    fields["parent"] = ids[0]
                if chance.random() < 0.3:
                    fields["group"] = chance.choice("gh")
                made = await enqueue(engine, **fields)
                if made not in ids:
                    ids.append(made)
            case 4 | 5:
                running += await claim(
                    engine, chance.choice(workers), chance.randint(1, 3), [chance.choice(QUEUES)]
                )
            case 6 | 7 if running:
                job = running.pop(chance.randrange(len(running)))
                await settle(engine, job, outcome(chance))
            case 8 if ids:
                chosen = chance.sample(ids, min(len(ids), 2))
                await (
                    engine.cancel(chosen, "no") if chance.random() < 0.5 else engine.rerun(chosen)
                )
            case 9:
                clock.advance(chance.choice([1.0, 40.0]))
    return ids


def a_filter(chance: random.Random, jobs: Sequence[Job]) -> JobFilter:
    """A filter of up to four conditions, with values that some job has."""
    job = chance.choice(jobs)
    ended = [each.completed_at for each in jobs if each.completed_at is not None]
    some = timedelta(seconds=chance.choice([-20, 0, 20]))
    fields: dict[str, Any] = {
        "statuses": tuple(chance.sample(list(Status), chance.randint(1, 4))),
        "queues": tuple(chance.sample(QUEUES, chance.randint(1, 2))),
        "tasks": (job.task,),
        "lane": job.lane,
        "key": job.key,
        "parent": job.parent,
        "group": job.group,
        "created_after": job.created_at + some,
        "created_before": job.created_at + some,
        "error_types": tuple(chance.sample(ERRORS, chance.randint(1, 2))),
        "worker": job.worker,
        "finished_after": chance.choice(ended) + some if ended else None,
        "finished_before": chance.choice(ended) + some if ended else None,
    }
    names = chance.sample(sorted(fields), chance.randint(0, 4))
    return JobFilter(**{name: fields[name] for name in names})


def matches(wanted: JobFilter, job: Job) -> bool:
    ended = job.completed_at if job.status.final else None
    return (
        (not wanted.statuses or job.status in wanted.statuses)
        and (not wanted.queues or job.queue in wanted.queues)
        and (not wanted.tasks or job.task in wanted.tasks)
        and wanted.lane in (None, job.lane)
        and wanted.key in (None, job.key)
        and wanted.parent in (None, job.parent)
        and wanted.group in (None, job.group)
        and (wanted.created_after is None or job.created_at >= wanted.created_after)
        and (wanted.created_before is None or job.created_at < wanted.created_before)
        and (not wanted.error_types or job.error_type in wanted.error_types)
        and wanted.worker in (None, job.worker)
        and (
            wanted.finished_after is None or (ended is not None and ended >= wanted.finished_after)
        )
        and (
            wanted.finished_before is None or (ended is not None and ended < wanted.finished_before)
        )
    )


async def listed(engine: Engine, wanted: JobFilter, **bounds: Any) -> list[str]:
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = await engine.list_jobs(wanted, cursor=cursor, **bounds)
        assert len(page.jobs) <= bounds["limit"]
        ids += [job.id for job in page.jobs]
        if page.cursor is None:
            return ids
        assert cursor is None or page.cursor < cursor
        cursor = page.cursor


@pytest.mark.parametrize("seed", range(2))
async def test_lists_and_counts_are_those_of_a_model(
    engine: Engine, clock: Clock, seed: int
) -> None:
    chance = random.Random(seed)
    ids = await some_jobs(engine, clock, chance, 150)
    jobs = sorted(await engine.get(ids), key=lambda job: job.id, reverse=True)
    for _ in range(40):
        wanted = a_filter(chance, jobs)
        expected = [job.id for job in jobs if matches(wanted, job)]
        look = chance.randint(1, 70)
        ways: list[dict[str, Any]] = [
            {"limit": 100}, {"limit": 3},
            {"limit": chance.randint(1, 9), "look": look, "brief": True},
        ]  # fmt: skip
        for bounds in ways:
            assert await listed(engine, wanted, **bounds) == expected, (wanted, bounds)
        whole = await engine.count_jobs(wanted)
        assert (whole.count, whole.complete) == (len(expected), True), wanted
        some = await engine.count_jobs(wanted, look=look)
        assert some.count <= min(look, len(expected)), (wanted, look)
        # What says that it is complete has to be.
        assert not some.complete or some.count == len(expected), (wanted, look)
