"""Storing the jobs of messages, so that a message makes one job however often it comes."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.batching import slices
from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.message_parser import Refused, Sorted, bounded, refused
from headrace.engine.base import Engine
from headrace.enqueue import BATCH_BYTES, BATCH_JOBS
from headrace.errors import EngineError
from headrace.model.job import Inserted, NewJob


async def insert(
    engine: Engine, jobs: Sequence[NewJob], sources: Sequence[Message]
) -> list[Inserted]:
    """Store jobs; those whose message came before are answered with the job that it has.

    A topic that was deleted and made anew counts from the beginning, and two clusters may have a
    topic of the same name. So a job that has the key already is looked at: if its message was sent
    at another time, it is another message, which gets a key with its time.
    """
    answers = await engine.insert(jobs)
    doubtful = [
        number
        for number, answer in enumerate(answers)
        if not answer.created and sources[number].sent_at is not None
    ]
    if not doubtful:
        return answers
    existing = {
        job.id: job.meta for job in await engine.get([answers[each].id for each in doubtful])
    }
    others = [
        number
        for number in doubtful
        if not same_moment(
            existing.get(answers[number].id, {}).get("sent_at"), sources[number].sent_at
        )
    ]
    if others:
        for number in others:
            jobs[number].key = again(jobs[number].key or "", sources[number].sent_at)
        for number, answer in zip(
            others, await engine.insert([jobs[number] for number in others]), strict=True
        ):
            answers[number] = answer
    return answers


async def insert_all(engine: Engine, batch: Sorted) -> tuple[int, list[Refused]]:
    """Store a batch in calls of bounded size. Answers how many jobs are new, and those messages
    that the engine would not take. Raises `EngineError` if it is the engine's own trouble.
    """
    created = 0
    unfit: list[Refused] = []
    sizes = [len(job.args) for job in batch.jobs]
    for part in slices(sizes, length=BATCH_JOBS, size=BATCH_BYTES):
        made, rest = await _insert_part(engine, batch.jobs[part], batch.sources[part])
        created += made
        unfit += rest
    return created, unfit


async def _insert_part(
    engine: Engine, jobs: Sequence[NewJob], sources: Sequence[Message]
) -> tuple[int, list[Refused]]:
    try:
        answers = await insert(engine, jobs, sources)
    except EngineError:
        raise
    except Exception as error:
        if len(jobs) == 1:
            return 0, [refused(sources[0], error)]
        # One job that the engine cannot hold must not keep the others out: find it by halves.
        half = len(jobs) // 2
        made, unfit = await _insert_part(engine, jobs[:half], sources[:half])
        more, rest = await _insert_part(engine, jobs[half:], sources[half:])
        return made + more, unfit + rest
    return sum(answer.created for answer in answers), []


def same_moment(one: object, other: float | None) -> bool:
    """Whether two messages of one key were sent at the same time: then they are the same."""
    if not isinstance(one, (int, float)) or other is None:
        return True
    return abs(one - other) < 0.0015


def again(key: str, sent_at: float | None) -> str:
    """A key for another message in the same place."""
    return bounded(f"{key}:{round((sent_at or 0) * 1000)}")
