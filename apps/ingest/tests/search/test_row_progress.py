"""A row shows how far its attempt is, in few writes, and never after the attempt has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from tests.support.processes import until

from headrace_ingest import row_progress
from headrace_ingest.row_progress import RowProgress
from headrace_ingest.store.records import NewDocument, Outcome
from headrace_ingest.store.repository import Repository


class Counted(Repository):
    """Counts what is written, and may fail."""

    written: list[tuple[str, int]]
    broken = False
    afterwards: Callable[[], None] | None = None

    async def show(self, document_id: str, token: int, stage: str, progress: int) -> Outcome:
        if self.broken:
            raise OSError("the disk is full")
        outcome = await super().show(document_id, token, stage, progress)
        self.written.append((stage, progress))
        if self.afterwards is not None:
            self.afterwards()
        return outcome


@pytest.fixture
async def repository(engine: AsyncEngine) -> Counted:
    made = Counted(engine)
    made.written = []
    document = NewDocument(document_id="d1", name="rules.txt", path="/hr", sha256="a")
    await made.begin(document, 1)
    return made


async def shown(repository: Repository) -> tuple[str, int]:
    row = await repository.get("d1")
    assert row is not None
    return row.stage, row.progress


async def test_many_are_few_writes_and_the_last_is_written(repository: Counted) -> None:
    async with RowProgress(repository, "d1", 1) as progress:
        began = time.monotonic()
        for number in range(90):
            progress.show("embedding", number)
            await asyncio.sleep(0)

        async def last() -> bool:
            return await shown(repository) == ("embedding", 89)

        await until(last, "the last one is written")
    # One after each pause.
    pauses = (time.monotonic() - began) // row_progress.PAUSE_SECONDS
    assert len(repository.written) <= max(1, pauses)


async def test_a_short_attempt_writes_nothing_of_its_own(
    repository: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_progress, "PAUSE_SECONDS", 3600.0)
    async with RowProgress(repository, "d1", 1) as progress:
        progress.show("parsing", 2)
        await asyncio.sleep(0)
        progress.show("storing", 92)
        await asyncio.sleep(0)
    assert repository.written == []


async def test_nothing_is_written_after_the_attempt(
    repository: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_progress, "PAUSE_SECONDS", 0.0)
    repository.afterwards = lambda: monkeypatch.setattr(row_progress, "PAUSE_SECONDS", 3600.0)
    async with RowProgress(repository, "d1", 1) as progress:
        progress.show("parsing", 2)
        await until(lambda: repository.written, "the first is written")
        progress.show("masking", 27)
    progress.show("storing", 92)
    assert await shown(repository) == ("parsing", 2)


async def test_a_document_that_is_gone_is_told(repository: Counted) -> None:
    await repository.delete("d1")
    async with RowProgress(repository, "d1", 1) as progress:
        progress.show("parsing", 2)
        await until(lambda: repository.written, "the first is written")
        assert progress.show("parsed", 20) is Outcome.GONE


async def test_what_goes_wrong_is_raised_at_the_next(repository: Counted) -> None:
    repository.broken = True
    async with RowProgress(repository, "d1", 1) as progress:
        progress.show("parsing", 2)
        await until(lambda: progress._failed, "the write fails")
        with pytest.raises(OSError, match="disk is full"):
            progress.show("parsed", 20)
