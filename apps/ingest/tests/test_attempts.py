"""What cannot get better is tried once; what may, three times more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ingest_support.embedding_server import EmbeddingServer, an_embedding_server
from ingest_support.pdf import text_pdf

import headrace
from headrace import testing
from headrace_ingest.bundle import bundle
from headrace_ingest.documents import Documents
from headrace_ingest.service import IngestService
from headrace_ingest.store.sources import FileSource
from headrace_ingest.views import DocumentView

# Longer than all pauses between attempts together: 5, 10 and 20 s.
LONG = 120.0
TEXT = b"Parrots can live for eighty years."


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with an_embedding_server() as made:
        yield made


async def outcome(
    folder: Path, url: str, content: bytes = TEXT, name: str = "a.txt"
) -> tuple[headrace.Job, DocumentView]:
    """Process one document with the embeddings of a server, until it has ended."""
    app = headrace.App(f"sqlite:///{folder}/jobs.db", artifacts=str(folder / "files"))
    setup = app.load_bundle(
        bundle, embedding_url=url, embedding_key="k", embedding_dimensions=4, mask_names=False
    )
    async with app:
        service = IngestService(setup)
        documents = Documents(service)
        async with FileSource(content) as source:
            accepted = await documents.add(source, name)
        await testing.run(app, advance=LONG)
        shown = await documents.get(accepted.document_id)
        assert shown is not None
        return await app.get(accepted.job_id), shown


@pytest.mark.parametrize(
    ("status", "error_type"), [(401, "AuthenticationError"), (422, "ValidationError")]
)
async def test_a_refusal_is_tried_once(
    tmp_path: Path, server: EmbeddingServer, status: int, error_type: str
) -> None:
    server.answers = [(status, {}, b"no")] * 10
    job, shown = await outcome(tmp_path, server.url)
    assert (job.status, job.attempt, job.error_type) == ("failed", 1, error_type)
    assert len(server.requests) == 1
    assert (shown.status, shown.chunks) == ("failed", 0)
    assert shown.error == job.error


async def test_a_document_that_cannot_be_read_is_tried_once(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    job, shown = await outcome(tmp_path, server.url, b"")
    assert (job.status, job.attempt, job.error_type) == ("failed", 1, "ValidationError")
    assert (server.requests, shown.status) == ([], "failed")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (text_pdf("Parrots can live for eighty years.")[:200], "it is damaged"),
        (text_pdf(""), "has no text"),
    ],
    ids=["cut", "without text"],
)
async def test_a_pdf_that_no_parser_can_read_is_tried_once(
    tmp_path: Path, server: EmbeddingServer, content: bytes, said: str
) -> None:
    job, shown = await outcome(tmp_path, server.url, content, "parrots.pdf")
    assert (job.status, job.attempt, job.error_type) == ("failed", 1, "ParserError")
    assert (server.requests, shown.status, shown.chunks) == ([], "failed", 0)
    assert shown.error == job.error
    assert str(shown.error).startswith('"parrots.pdf" ')
    assert said in str(shown.error)


async def test_a_network_error_is_tried_three_times_more(tmp_path: Path) -> None:
    with an_embedding_server() as gone:
        url = gone.url
    job, shown = await outcome(tmp_path, url)
    assert (job.status, job.attempt, job.error_type) == ("failed", 4, "EmbeddingError")
    assert shown.status == "failed"
    assert "no answer from" in str(shown.error)


async def test_a_server_that_comes_back_completes_the_document(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    server.answers = [(500, {}, b"oops")] * 3
    job, shown = await outcome(tmp_path, server.url)
    assert (job.status, job.attempt) == ("completed", 4)
    assert (shown.status, shown.progress, shown.error) == ("completed", 100, None)
