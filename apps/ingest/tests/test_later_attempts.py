"""A later attempt goes on after the last finished stage, and a document is done anew when that is
asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from ingest_support.embedding_server import EmbeddingServer, an_embedding_server

import headrace
from headrace import testing
from headrace_ingest.bundle import bundle
from headrace_ingest.documents import Documents
from headrace_ingest.masking.process import Masker
from headrace_ingest.parsing.pool import ParserPool
from headrace_ingest.service import IngestService
from headrace_ingest.store.repository import Repository
from headrace_ingest.store.sources import FileSource

LONG = 120.0
TEXT = b"Parrots live long. Call 010-2345-6789. Owls hunt at night. Bees dance."
OOPS = (500, {}, b"oops")


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with an_embedding_server() as made:
        yield made


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a document was read and masked."""
    counted: Counter[str] = Counter()
    for kind, name in ((ParserPool, "parse"), (Masker, "mask")):
        function = getattr(kind, name)

        async def called(*arguments: Any, name: str = name, function: Any = function) -> Any:
            counted[name] += 1
            return await function(*arguments)

        monkeypatch.setattr(kind, name, called)
    return counted


@asynccontextmanager
async def opened(
    folder: Path, url: str, **settings: Any
) -> AsyncIterator[tuple[headrace.App, IngestService]]:
    """The bundle with small chunks, one in each batch."""
    app = headrace.App(f"sqlite:///{folder}/jobs.db", artifacts=str(folder / "files"))
    sizes = {"chunk_size": 25, "overlap_size": 0, "batch_size": 1}
    service = {"embedding_url": url, "embedding_key": "k", "embedding_dimensions": 4}
    setup = app.load_bundle(bundle, mask_names=False, **sizes, **service, **settings)
    async with app:
        yield app, IngestService(setup)


async def added(service: IngestService) -> str:
    async with FileSource(TEXT) as source:
        return (await Documents(service).add(source, "a.txt")).document_id


def asked(server: EmbeddingServer) -> Counter[str]:
    return Counter(text for request in server.requests for text in request["input"])


async def test_a_finished_stage_and_a_finished_batch_are_not_done_again(
    tmp_path: Path, server: EmbeddingServer, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Repository.store
    failures = iter([OSError("the disk is away")])

    async def broken(*arguments: Any) -> Any:
        for error in failures:
            raise error
        return await store(*arguments)

    monkeypatch.setattr(Repository, "store", broken)
    async with opened(tmp_path, server.url) as (app, service):
        document_id = await added(service)
        # The second batch fails in the first attempt, and storing in the second.
        server.answers = [server.answer({"input": ["Parrots live long."]}), OOPS]
        await testing.run(app, advance=LONG)
        job = await app.get(document_id)
        assert (job.status, job.attempt) == ("completed", 3), job.error
        assert calls == {"parse": 1, "mask": 1}
        texts = asked(server)
        assert len(texts) > 2
        twice = [text for text, count in texts.items() if count > 1]
        assert len(twice) == 1, "only the batch that failed"
        row = await service.repository.get(document_id)
        assert row is not None
        assert (row.chunks, row.personal_data, row.characters) == (
            len(server.requests) - 1,
            {"phone": 1},
            len(TEXT),
        )
        assert await service.repository.read_work(document_id, "masked") is None
        assert await service.repository.read_work(document_id, "vectors 0") is None


async def test_a_document_is_read_and_masked_anew_when_it_is_indexed_again(
    tmp_path: Path, server: EmbeddingServer, calls: Counter[str]
) -> None:
    async with opened(tmp_path, server.url) as (app, service):
        document_id = await added(service)
        await testing.run(app)
        before = asked(server)
        await Documents(service).reindex(document_id)
        await testing.run(app)
        row = await service.repository.get(document_id)
        assert row is not None
        assert row.status == "completed"
        assert calls == {"parse": 2, "mask": 2}
        assert asked(server) == before + before


async def test_vectors_of_another_model_are_not_used(
    tmp_path: Path, server: EmbeddingServer, calls: Counter[str]
) -> None:
    async with opened(tmp_path, server.url, embedding_model="old") as (app, service):
        document_id = await added(service)
        server.answers = [server.answer({"input": ["Parrots live long."]}), *[OOPS] * 4]
        await testing.run(app, advance=LONG)
        assert (await app.get(document_id)).status == "failed"
    async with opened(tmp_path, server.url, embedding_model="new") as (app, service):
        await app.retry(document_id)
        await testing.run(app, advance=LONG)
        row = await service.repository.get(document_id)
        assert row is not None
        assert (row.status, row.model) == ("completed", "new")
        assert calls == {"parse": 1, "mask": 1}
        models = Counter(request["model"] for request in server.requests)
        assert models["new"] == row.chunks


async def test_what_was_left_goes_with_the_document(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    async with opened(tmp_path, server.url) as (app, service):
        document_id = await added(service)
        server.answers = [OOPS] * 4
        await testing.run(app, advance=LONG)
        assert await service.repository.read_work(document_id, "masked") is not None
        await Documents(service).remove(document_id)
        assert await service.repository.read_work(document_id, "masked") is None


async def test_a_job_that_is_run_again_without_what_was_left_begins_anew(
    tmp_path: Path, server: EmbeddingServer, calls: Counter[str]
) -> None:
    """As after `reindex` was killed between its two steps, and somebody has retried the job."""
    async with opened(tmp_path, server.url) as (app, service):
        document_id = await added(service)
        await testing.run(app)
        row = await service.repository.get(document_id)
        assert row is not None
        async with service.setup.engine().begin() as connection:
            await connection.exec_driver_sql("UPDATE documents SET status = 'processing'")
        await app.retry(document_id)
        await testing.run(app)
        again = await service.repository.get(document_id)
        assert again is not None
        assert (again.status, again.chunks) == ("completed", row.chunks)
        assert calls == {"parse": 2, "mask": 2}
