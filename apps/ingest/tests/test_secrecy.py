"""What goes wrong while a document is processed is told without its text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ingest_support.running import files_with

import headrace
from headrace_ingest import pipeline
from headrace_ingest.bundle import bundle
from headrace_ingest.documents import Documents
from headrace_ingest.masking.process import Masker
from headrace_ingest.parsing.parsed import Format, Parsed
from headrace_ingest.service import IngestService
from headrace_ingest.store.sources import FileSource

SECRET = "the-quokka-file-4711"


@pytest.mark.parametrize("error", [TypeError, AttributeError])
async def test_an_error_of_a_program_does_not_repeat_the_text(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: type[Exception],
) -> None:
    async def parse(*_: Any) -> Parsed:
        return Parsed(text=SECRET, format=Format.TXT, media_type="text/plain")

    async def broken(_: Masker, text: str, *__: Any) -> None:
        raise error(f"cannot mask {text}")

    monkeypatch.setattr(pipeline._Attempt, "_parse", parse)
    monkeypatch.setattr(Masker, "mask", broken)
    app = headrace.App(f"sqlite:///{tmp_path}/jobs.db", artifacts=str(tmp_path / "files"))
    setup = app.load_bundle(bundle)
    async with app:
        documents = Documents(IngestService(setup))
        async with FileSource(SECRET.encode()) as source:
            accepted = await documents.add(source, "a.txt")
        await headrace.JobOrchestrator(app).run_until_idle()
        job = await app.get(accepted.job_id)
        shown = await documents.get(accepted.document_id)
        assert (job.status, job.attempt, job.error_type) == ("failed", 1, error.__name__)
        assert shown is not None
        assert shown.error == f"masking failed by an error of the program: {error.__name__}"
        assert shown.status == "failed"
        assert SECRET not in f"{job} {caplog.text}"
        assert files_with(SECRET.encode(), [tmp_path]) == []
