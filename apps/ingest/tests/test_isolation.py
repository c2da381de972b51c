"""A document that hangs the parser, or fills the memory, ends its own process and nothing else."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from ingest_support.pdf import bomb_pdf, hanging_pdf, text_pdf

from headrace import testing


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import sys

    monkeypatch.setenv("INGEST_TEST_URL", f"sqlite:///{tmp_path}/jobs.db")
    sys.modules.pop("parsing_app", None)
    from parsing_app import app

    yield app
    sys.modules.pop("parsing_app", None)


async def run(app, task: str, path: Path, data: bytes):
    path.write_bytes(data)  # noqa: ASYNC240 (nothing else runs)
    async with app:
        job = await app.tasks[task].enqueue(path=str(path), name="a.pdf")
        await testing.run(app, isolate=True)
        return await app.get(job.id)


async def test_a_pdf_that_hangs_the_parser_is_killed_at_its_time(app, tmp_path: Path) -> None:
    begun = time.monotonic()
    job = await run(app, "parse.limited", tmp_path / "a.pdf", hanging_pdf())
    assert job.status == "timeout"
    assert time.monotonic() - begun < 30


async def test_a_pdf_that_fills_the_memory_fails_once(app, tmp_path: Path) -> None:
    job = await run(app, "parse.small", tmp_path / "a.pdf", bomb_pdf(400))
    assert job.status == "failed"
    assert job.attempt == 1, job.error


async def test_a_plain_pdf_is_read_within_the_same_limits(app, tmp_path: Path) -> None:
    job = await run(app, "parse.small", tmp_path / "a.pdf", text_pdf("annual leave"))
    assert job.status == "completed"
    assert job.result == "annual leave"
