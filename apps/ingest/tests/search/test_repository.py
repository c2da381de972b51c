"""Documents are stored whole or not at all, and never by an attempt that was given up."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from headrace import InvalidInput
from headrace.bundles import Setup
from headrace_ingest.chunking import Chunk
from headrace_ingest.store.records import NewDocument, Outcome, Processed, Status, below
from headrace_ingest.store.repository import Repository
from headrace_ingest.store.vectors import VectorFormat, read_format

DIMENSIONS = 8


@pytest.fixture
def repository(engine: AsyncEngine) -> Repository:
    return Repository(engine)


def new(
    document_id: str, *, name: str = "rules.txt", path: str = "/hr", sha256: str = "a"
) -> NewDocument:
    return NewDocument(document_id=document_id, name=name, path=path, sha256=sha256)


def parts(count: int, text: str = "text") -> tuple[list[Chunk], list[dict[int, np.ndarray]]]:
    chunks = [
        Chunk(order, order * 10, order * 10 + 10, f"{text} {order}") for order in range(count)
    ]
    vectors = [{number: np.full(DIMENSIONS, 0.25, np.float32) for number in (1, 2)} for _ in chunks]
    return chunks, vectors


async def stored(
    repository: Repository,
    document: NewDocument,
    token: int = 1,
    count: int = 3,
    text: str = "text",
) -> Outcome:
    await repository.begin(document, token)
    processed = Processed(document_id=document.document_id, characters=30, model="m")
    return (await repository.store(processed, *parts(count, text), token)).outcome


async def rows(engine: AsyncEngine) -> tuple[int, int, int]:
    """How many documents, chunks and vectors there are."""
    async with engine.connect() as connection:
        counts = [
            await connection.scalar(sa.text(f"SELECT count(*) FROM {table}"))
            for table in ("documents", "document_chunks", "embeddings")
        ]
    return counts[0], counts[1], counts[2]


async def test_the_column_of_vectors_is_what_the_server_has(
    engine: AsyncEngine, request: pytest.FixtureRequest
) -> None:
    async with engine.connect() as connection:
        found = await read_format(connection)
    wanted = VectorFormat.HALFVEC if "pgvector" in request.node.name else VectorFormat.BYTES
    assert found is wanted


async def test_of_the_same_files_that_come_at_once_one_is_added(repository: Repository) -> None:
    found = await asyncio.gather(*(repository.add(new(f"d{number}")) for number in range(5)))
    (added,) = [number for number, same in enumerate(found) if same is None]
    assert {same.document_id for same in found if same is not None} == {f"d{added}"}
    assert await repository.add(new("elsewhere", path="/it")) is None


async def test_migrating_twice_changes_nothing(setup: Setup) -> None:
    assert await setup.migrate() == []


async def test_a_document_is_stored_with_all_its_chunks_and_vectors(
    repository: Repository, engine: AsyncEngine
) -> None:
    assert await stored(repository, new("d1")) is Outcome.STORED
    assert await rows(engine) == (1, 3, 6)
    row = await repository.get("d1")
    assert row is not None
    assert (row.status, row.stage, row.progress, row.chunks) == (
        Status.COMPLETED,
        "completed",
        100,
        3,
    )


async def test_vectors_come_back_as_they_were_stored(
    repository: Repository, engine: AsyncEngine
) -> None:
    vector = np.linspace(-1, 1, DIMENSIONS, dtype=np.float32)
    await repository.begin(new("d1"), 1)
    chunks, _ = parts(1)
    processed = Processed(document_id="d1", characters=1, model="m")
    await repository.store(processed, chunks, [{1: vector}], 1)
    async with engine.connect() as connection:
        kind = await read_format(connection)
        stored_bytes = await connection.scalar(sa.select(kind.readable)) or b""
    assert np.allclose(kind.unpack(stored_bytes), vector, atol=1e-3)
    assert kind.size_of(stored_bytes) == DIMENSIONS


async def test_a_stale_attempt_changes_nothing_and_is_told_so(
    repository: Repository, engine: AsyncEngine
) -> None:
    document = new("d1")
    await stored(repository, document, token=5, text="later")
    before = await repository.get("d1")
    processed = Processed(document_id="d1", characters=1, model="other")
    assert (await repository.store(processed, *parts(7, "stale"), 4)).outcome is Outcome.STALE
    assert await repository.begin(document, 4) is Outcome.STALE
    assert await repository.show("d1", 4, "parsing", 10) is Outcome.STALE
    assert await repository.fail("d1", 4, "broken") is Outcome.STALE
    for only in (False, True):
        kept = await repository.save_work("d1", 4, "masked", b"stale", only=only)
        assert kept is Outcome.STALE
    assert await repository.read_work("d1", "masked") is None
    resumed = await repository.resume("d1", 4)
    assert (resumed.outcome, resumed.row) == (Outcome.STORED, before)
    assert await repository.get("d1") == before
    assert await rows(engine) == (1, 3, 6)


async def test_an_attempt_that_was_given_up_cannot_begin_again(repository: Repository) -> None:
    await repository.begin(new("d1"), 5)
    assert (await repository.resume("d1", 4)).outcome is Outcome.STALE
    assert (await repository.resume("d1", 5)).outcome is Outcome.STORED


async def test_what_a_stage_left_takes_the_place_of_what_was_there(repository: Repository) -> None:
    await repository.begin(new("d1"), 1)
    for content in (b"first", b"again"):
        assert await repository.save_work("d1", 1, "vectors 0", content) is Outcome.STORED
    assert await repository.read_work("d1", "vectors 0") == b"again"
    # A later attempt masks anew: the vectors belong to another text.
    assert await repository.save_work("d1", 2, "masked", b"text", only=True) is Outcome.STORED
    assert await repository.read_work("d1", "vectors 0") is None
    assert await repository.read_work("d1", "masked") == b"text"


async def test_a_repeat_of_the_same_attempt_is_fine(
    repository: Repository, engine: AsyncEngine
) -> None:
    document = new("d1")
    await stored(repository, document, token=5)
    processed = Processed(document_id="d1", characters=30, model="m")
    assert (await repository.store(processed, *parts(3), 5)).outcome is Outcome.STORED
    assert await rows(engine) == (1, 3, 6)


async def test_a_write_that_breaks_leaves_nothing_behind(
    repository: Repository, engine: AsyncEngine
) -> None:
    await stored(repository, new("d1"), token=1, text="first")
    chunks, vectors = parts(2, "second")
    doubled = [chunks[0], chunks[0]._replace(text="same place")]
    processed = Processed(document_id="d1", characters=1, model="m")
    with pytest.raises(sa.exc.IntegrityError):
        await repository.store(processed, doubled, vectors, 2)
    assert await rows(engine) == (1, 3, 6)
    row = await repository.get("d1")
    assert row is not None
    assert (row.status, row.token) == (Status.COMPLETED, 1)


async def test_chunks_without_their_vectors_are_refused(repository: Repository) -> None:
    await repository.begin(new("d1"), 1)
    chunks, vectors = parts(2)
    with pytest.raises(InvalidInput, match="2 chunks have 1 sets of vectors"):
        await repository.store(
            Processed(document_id="d1", characters=1, model="m"), chunks, vectors[:1], 1
        )


async def test_progress_goes_forward_only_within_an_attempt(repository: Repository) -> None:
    await repository.begin(new("d1"), 1)
    await repository.show("d1", 1, "masking", 50)
    await repository.show("d1", 1, "parsing", 10)
    row = await repository.get("d1")
    assert row is not None
    assert (row.stage, row.progress) == ("masking", 50)
    await repository.show("d1", 2, "parsing", 10)
    row = await repository.get("d1")
    assert row is not None
    assert (row.stage, row.progress) == ("parsing", 10)


async def test_a_late_progress_or_failure_does_not_undo_a_completed_document(
    repository: Repository,
) -> None:
    await stored(repository, new("d1"), token=3)
    await repository.show("d1", 3, "storing", 90)
    assert await repository.fail("d1", 3, "late") is Outcome.STALE
    row = await repository.get("d1")
    assert row is not None
    assert (row.status, row.progress, row.error) == (Status.COMPLETED, 100, None)


async def test_a_failed_document_says_why(repository: Repository) -> None:
    await repository.begin(new("d1"), 1)
    await repository.fail("d1", 1, "the file is locked")
    row = await repository.get("d1")
    assert row is not None
    assert (row.status, row.error) == (Status.FAILED, "the file is locked")


async def test_the_same_file_at_the_same_path_is_recognised(repository: Repository) -> None:
    await stored(repository, new("d1", sha256="abc"))
    found = await repository.find_same("/hr/", "abc")
    assert found is not None
    assert found.document_id == "d1"
    assert await repository.find_same("/hr", "other") is None
    assert await repository.find_same("/hr/leave", "abc") is None


async def test_a_new_version_replaces_the_old_one(
    repository: Repository, engine: AsyncEngine
) -> None:
    await stored(repository, replace(new("d1", sha256="a"), artifact="files/d1"))
    await repository.begin(new("d2", sha256="b"), 1)
    processed = Processed(document_id="d2", characters=1, model="m")
    for _ in range(2):  # a repeat says the same
        result = await repository.store(processed, *parts(2), 1)
        assert result.outcome is Outcome.STORED
        assert [(old.document_id, old.artifact) for old in result.replaced] == [("d1", "files/d1")]
    assert await rows(engine) == (2, 2, 4)
    old, current = await repository.get("d1"), await repository.get("d2")
    assert old is not None
    assert current is not None
    assert (old.status, old.replaced_by, old.chunks) == (Status.REPLACED, "d2", 0)
    assert (current.version, old.version) == (2, 1)
    assert await repository.find_same("/hr", "a") is None


async def test_an_older_version_that_ends_later_does_not_replace_the_newer(
    repository: Repository, engine: AsyncEngine
) -> None:
    await repository.begin(new("d1", sha256="a"), 1)
    await stored(repository, new("d2", sha256="b"))
    processed = Processed(document_id="d1", characters=1, model="m")
    assert (await repository.store(processed, *parts(5), 1)).outcome is Outcome.SUPERSEDED
    assert await rows(engine) == (2, 3, 6)
    row = await repository.get("d2")
    assert row is not None
    assert row.status is Status.COMPLETED


async def test_versions_that_end_at_once_leave_one_current(
    repository: Repository, engine: AsyncEngine
) -> None:
    names = [f"d{number}" for number in range(6)]
    for name in names:
        await repository.begin(new(name, sha256=name), 1)
    await asyncio.gather(
        *(
            repository.store(Processed(document_id=name, characters=1, model="m"), *parts(3), 1)
            for name in names
        )
    )
    found = [await repository.get(name) for name in names]
    completed = [row.document_id for row in found if row and row.status is Status.COMPLETED]
    assert completed == ["d5"]
    assert (await rows(engine))[1:] == (3, 6)


async def test_deleting_removes_all_and_a_late_job_does_not_bring_it_back(
    repository: Repository, engine: AsyncEngine
) -> None:
    await stored(repository, new("d1"))
    deleted = await repository.delete("d1")
    assert deleted is not None
    assert await rows(engine) == (0, 0, 0)
    processed = Processed(document_id="d1", characters=1, model="m")
    assert (await repository.store(processed, *parts(1), 9)).outcome is Outcome.GONE
    assert await repository.begin(new("d1"), 9) is Outcome.GONE
    assert await repository.show("d1", 9, "parsing", 1) is Outcome.GONE
    assert await repository.save_work("d1", 9, "masked", b"gone") is Outcome.GONE
    assert (await repository.resume("d1", 9)).outcome is Outcome.GONE
    assert await repository.delete("d1") is None
    assert await rows(engine) == (0, 0, 0)


async def test_documents_are_listed_by_path_and_status_in_pages(repository: Repository) -> None:
    paths = ["/hr", "/hr/leave", "/hrx", "/HR/leave", "/it"]
    for number, path in enumerate(paths):
        await repository.begin(new(f"d{number}", path=path), 1)
    await repository.fail("d1", 1, "broken")

    async def listed(path: str, status: Status | None = None) -> list[str]:
        page = await repository.list(path, status)
        return [document.path for document in page.documents]

    assert await listed("/hr") == ["/hr/leave", "/hr"]
    assert await listed("/hr", Status.FAILED) == ["/hr/leave"]
    assert await listed("/") == paths[::-1]
    first = await repository.list(limit=3)
    assert first.next is not None
    second = await repository.list(limit=3, after=first.next)
    assert second.next is None
    assert [each.path for each in (*first.documents, *second.documents)] == paths[::-1]
    with pytest.raises(InvalidInput, match="use the value of the page before"):
        await repository.list(after="x")


def test_a_path_is_within_its_parents_only() -> None:
    assert below("/hr/leave", "/hr")
    assert below("/hr", "/hr")
    assert below("/hr", "/")
    assert not below("/hrx", "/hr")
