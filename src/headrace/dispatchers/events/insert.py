"""Inserts the jobs of messages: one job for a message, however often it is delivered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from headrace.batching import slices
from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.message_parser import (
    ParsedBatch,
    RejectedMessage,
    bounded,
    refused,
)
from headrace.engine.base import Engine
from headrace.enqueue import BATCH_BYTES, BATCH_JOBS
from headrace.errors import EngineError
from headrace.model.job import Inserted, NewJob

if TYPE_CHECKING:
    from headrace.tracing.tracer import Tracing


async def insert(
    engine: Engine, jobs: Sequence[NewJob], sources: Sequence[Message]
) -> list[Inserted]:
    """Insert jobs; for a message that was delivered before, return the job it made.

    A topic that was deleted and made anew counts from the beginning, and two clusters may have a
    topic of the same name. So the existing job is read: if its message was sent
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
            jobs[number].key = key_with_time(jobs[number].key or "", sources[number].sent_at)
        for number, answer in zip(
            others, await engine.insert([jobs[number] for number in others]), strict=True
        ):
            answers[number] = answer
    return answers


async def insert_traced(
    engine: Engine, batch: ParsedBatch, tracing: Tracing
) -> tuple[int, list[RejectedMessage]]:
    """Insert a batch with a span for each job, below that of whoever sent its message."""
    with tracing.enqueuing_each(batch.jobs) as jobs:
        return await insert_all(engine, msgspec.structs.replace(batch, jobs=jobs))


async def insert_all(engine: Engine, batch: ParsedBatch) -> tuple[int, list[RejectedMessage]]:
    """Insert a batch in calls of bounded size. Return how many jobs are new, and the messages that
    the engine rejects. Raises `EngineError` if the engine itself is in trouble.
    """
    created = 0
    unfit: list[RejectedMessage] = []
    sizes = [len(job.args) for job in batch.jobs]
    for part in slices(sizes, length=BATCH_JOBS, size=BATCH_BYTES):
        made, rest = await _insert_part(engine, batch.jobs[part], batch.sources[part])
        created += made
        unfit += rest
    return created, unfit


async def _insert_part(
    engine: Engine, jobs: Sequence[NewJob], sources: Sequence[Message]
) -> tuple[int, list[RejectedMessage]]:
    try:
        answers = await insert(engine, jobs, sources)
    except EngineError:
        raise
    except Exception as error:
        if len(jobs) == 1:
            return 0, [refused(sources[0], error)]
        # One job that the engine rejects must not stop the others: find it by halving.
        half = len(jobs) // 2
        made, unfit = await _insert_part(engine, jobs[:half], sources[:half])
        more, rest = await _insert_part(engine, jobs[half:], sources[half:])
        return made + more, unfit + rest
    return sum(answer.created for answer in answers), []


def same_moment(one: object, other: float | None) -> bool:
    """Return whether two messages of one key were sent at the same time: then they are the same."""
    if not isinstance(one, (int, float)) or other is None:
        return True
    return abs(one - other) < 0.0015


def key_with_time(key: str, sent_at: float | None) -> str:
    """Return the key of another message at the same topic, partition and offset."""
    return bounded(f"{key}:{round((sent_at or 0) * 1000)}")
