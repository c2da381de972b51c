"""A parent reads long results of its children in parts, and short ones all at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import headrace
from headrace.engine.bounded_reads import SHORT_BYTES
from headrace.model.job import Job
from headrace.model.status import Status
from headrace.orchestrator.durable import children
from tests.orchestrator.conftest import Worker, ended

COUNT = 6


@pytest.mark.parametrize("long", [True, False])
async def test_results_of_children_are_read_in_parts_bounded_by_bytes(
    app: headrace.App, worker: Worker, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    size = SHORT_BYTES if long else 10
    parts: list[int] = []
    verb = app.engine.get_part

    async def recorded(ids: Sequence[str], most_bytes: int) -> tuple[list[Job], list[str]]:
        jobs, rest = await verb(ids, most_bytes)
        parts.append(len(jobs))
        return jobs, rest

    @app.task
    async def fetch(number: int) -> str:
        return str(number) * size

    @app.task
    async def crawl(ctx: headrace.Context) -> Any:
        texts = await ctx.gather([fetch.job(number) for number in range(COUNT)])
        return [[text[0], len(text)] for text in texts]

    monkeypatch.setattr(app.engine, "get_part", recorded)
    monkeypatch.setattr(children, "PART_BYTES", 3 * SHORT_BYTES)
    await worker(app, max_workers=4).start()
    over = await ended(app, await crawl.enqueue())
    assert over.status is Status.COMPLETED
    assert over.result == [[str(number), size] for number in range(COUNT)]
    # Two and their quotation marks fit into a part.
    assert parts == ([2, 2, 2] if long else [COUNT])
