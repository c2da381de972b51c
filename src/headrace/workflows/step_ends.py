"""How steps ended, as it is kept with their run: small, with a large output beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from headrace.engine.base import Engine
from headrace.errors import SealedValue
from headrace.job_tree import children
from headrace.model.durable.entries import (
    CHILDREN,
    STAGE,
    ChildrenRecord,
    Outlined,
    StageRecord,
    stage_name,
)
from headrace.model.durable.writes import StoredEntry
from headrace.model.ids import nth_id
from headrace.model.job import JobFilter
from headrace.model.sealed import SEALED_ERROR, Opener
from headrace.model.status import Status

_NOT_COMPLETED = tuple(status for status in Status if status is not Status.COMPLETED)

Ended = Literal["completed", "failed", "skipped"]
OUTPUT = "output"


class StepEnd(Outlined, frozen=True, omit_defaults=True):
    """How a step ended. What was skipped has no output. The `large` output of one that failed is
    kept by itself, as the stage `output_stage` of the run, so that its end is known without it.
    """

    status: Ended
    output: Any = None
    error: str | None = None
    jobs: int = 0
    large: bool = False

    def outline(self) -> StepEnd:
        """Return how it ended, without what its jobs returned or said."""
        error = SEALED_ERROR if self.error else None
        return StepEnd(self.status, error=error, jobs=self.jobs, large=self.large)


def output_stage(step_id: str) -> str:
    """The name of the stage that has the large output of a step."""
    return stage_name(step_id, OUTPUT)


class Ends:
    """How the steps of a run ended, without their large outputs."""

    def __init__(self, ends: Mapping[str, tuple[StepEnd, datetime]]) -> None:
        self._ends = ends

    @classmethod
    async def read(
        cls,
        engine: Engine,
        run_id: str,
        entries: Sequence[StoredEntry],
        opener: Opener | None = None,
    ) -> Ends:
        """Read them from the entries of a run. What is sealed is left out without an opener."""
        made = {entry.name: entry for entry in entries if entry.kind == CHILDREN}
        return cls(
            {
                entry.name: (
                    await _end(engine, run_id, entry, made.get(entry.name), opener),
                    entry.at,
                )
                for entry in entries
                if entry.kind == STAGE and "[" not in entry.name
            }
        )

    def get(self, step_id: str) -> tuple[StepEnd, datetime] | None:
        """How a step ended and when, if it did."""
        return self._ends.get(step_id)

    def status(self, step_id: str) -> Ended | None:
        """How a step ended, if it did."""
        found = self._ends.get(step_id)
        return None if found is None else found[0].status


async def _end(
    engine: Engine,
    run_id: str,
    entry: StoredEntry,
    made: StoredEntry | None,
    opener: Opener | None,
) -> StepEnd:
    record = msgspec.json.decode(entry.body, type=StageRecord)
    if record.sealed is not None and opener is not None:
        with contextlib.suppress(SealedValue):
            whole = opener.open_stage(run_id, entry.name, record.sealed)
            return msgspec.json.decode(whole, type=StepEnd)
    if record.artifact is None:
        return msgspec.json.decode(record.value, type=StepEnd)
    # All of it is in the artifact: it completed, unless an older program has kept it, which put
    # failures aside as well. Then jobs of the step tell.
    if made is None:
        return StepEnd("completed")
    record_of_jobs = msgspec.json.decode(made.body, type=ChildrenRecord)
    count = record_of_jobs.count
    ids = {nth_id(record_of_jobs.base, index) for index in range(count)}
    wanted = JobFilter(group=entry.name, statuses=_NOT_COMPLETED)
    failed = [
        job
        async for page in children(engine, run_id, filter=wanted)
        for job in page
        if job.id in ids
    ]
    if not failed:
        return StepEnd("completed", jobs=count)
    error = f"{len(failed)} of {count}: {failed[0].error or 'no reason kept'}"
    return StepEnd("failed", error=error, jobs=count)
