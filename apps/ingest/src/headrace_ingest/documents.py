"""Documents as callers see them: handed in, read, deleted. Rows and jobs never disagree here."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import time
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import structs

from headrace import (
    ArtifactNotFound,
    InvalidInput,
    Job,
    JobConflict,
    JobFailed,
    JobNotFound,
    ResultTimeout,
    ValidationError,
)
from headrace import Status as JobStatus
from headrace_ingest.names import clean_name, clean_path, shown
from headrace_ingest.service import TASK, IngestService
from headrace_ingest.store.records import DocumentRow, NewDocument, Status
from headrace_ingest.views import Accepted, DocumentView, known, view_of

T = TypeVar("T")

PIECE = 1 << 20
# So long after its row a job may still come; then whoever wanted to enqueue it has died.
GRACE_SECONDS = 60.0
AT_ONCE = 8
# So long the outcome of a job may take after its document was stored.
ENDING_SECONDS = 10.0
# Between files that were handed in together; less cannot be told apart.
STEP_SECONDS = 1e-6
LOOKED_AT = 500
LARGEST_METADATA = 16_384
FIRST_STAGE = "parsing"


class Source(Protocol):
    """A file that can be read twice, such as an upload."""

    async def read(self, size: int = -1, /) -> bytes: ...

    async def seek(self, offset: int, /) -> None: ...


class Documents:
    """What can be done with documents."""

    def __init__(self, service: IngestService) -> None:
        self._service = service

    async def add(
        self,
        source: Source,
        name: str,
        path: str = "/",
        *,
        metadata: Mapping[str, Any] | None = None,
        owner: str | None = None,
    ) -> Accepted:
        """Keep a file, write its row and enqueue its job. The same file at the same path is not
        done twice.
        """
        (accepted,) = await self.add_many([(source, name)], path, metadata=metadata, owner=owner)
        return accepted

    async def add_many(
        self,
        files: Sequence[tuple[Source, str]],
        path: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        owner: str | None = None,
    ) -> list[Accepted]:
        """Add files with their names, some at once. They count as handed in in their order: of two
        versions of a document the later one stays.
        """
        path, now, gate = clean_path(path), time(), asyncio.Semaphore(AT_ONCE)
        # All of them before the first is stored.
        names = [clean_name(name) for _, name in files]

        async def add(place: int, content: _Content) -> Accepted:
            document = NewDocument(
                document_id="",
                name=names[place],
                path=path,
                sha256=content.sha256,
                owner=owner,
                metadata=dict(metadata or {}),
                created_at=now + place * STEP_SECONDS,
            )
            async with gate:
                return await self._add(files[place][0], content.size, document)

        async def read(source: Source) -> _Content:
            async with gate:
                return await _read(source)

        contents = await _all(read(source) for source, _ in files)
        first = {content.sha256: place for place, content in reversed(list(enumerate(contents)))}
        places = sorted(first.values())
        added = await _all(add(place, contents[place]) for place in places)
        by_place = dict(zip(places, added, strict=True))
        return [
            by_place.get(place) or structs.replace(by_place[first[content.sha256]], new=False)
            for place, content in enumerate(contents)
        ]

    async def _add(self, source: Source, size: int, document: NewDocument) -> Accepted:
        same = await self._same(document.path, document.sha256)
        if same is not None:
            return known(same)
        await source.seek(0)
        return await self._enqueue(_pieces(source), size, document)

    async def get(self, document_id: str) -> DocumentView | None:
        """Return a document; None if there is none."""
        row = await self._service.repository.get(document_id)
        return None if row is None else view_of(await self._reconciled(row))

    async def list(
        self, path: str, status: Status | None, *, limit: int, after: str | None
    ) -> tuple[list[DocumentView], str | None]:
        """Return documents within a path, the newest first, and where the next page begins."""
        path = clean_path(path)
        if status == Status.FAILED and after is None:
            # Rows of jobs that were killed or cancelled do not say so before they are looked at.
            await self.list(path, Status.PROCESSING, limit=LOOKED_AT, after=None)
        page = await self._service.repository.list(path, status, limit=limit, after=after)
        gate = asyncio.Semaphore(AT_ONCE)

        async def reconciled(row: DocumentRow) -> DocumentRow:
            if row.status != Status.PROCESSING:
                return row
            async with gate:
                return await self._reconciled(row)

        rows = await asyncio.gather(*(reconciled(row) for row in page.documents))
        # One that was thought to be processed may turn out to have failed.
        wanted = [row for row in rows if status is None or row.status == status]
        return [view_of(row) for row in wanted], page.next

    async def remove(self, document_id: str) -> DocumentRow | None:
        """Delete a document with everything that was made of it; return what it was."""
        row = await self._service.repository.delete(document_id)
        if row is None:
            return None
        with contextlib.suppress(JobNotFound, JobConflict, InvalidInput):
            await self._service.app.cancel(document_id, "its document was deleted")
        await self._service.remove_original(row.artifact)
        return row

    async def original(self, row: DocumentRow) -> AsyncIterator[bytes]:
        """Return the content of a document's original. Raises `ArtifactNotFound`, or
        `ValidationError` if another key has sealed it.
        """
        if row.artifact is None:
            raise ArtifactNotFound(f"the original of {shown(row.name)} was not kept")
        content = self._service.open_original(row.artifact, row.name)
        # Before the first byte is sent: later nobody can be told that it cannot be opened.
        first = await anext(content)

        async def all_of_it() -> AsyncIterator[bytes]:
            yield first
            async for piece in content:
                yield piece

        return all_of_it()

    async def reindex(self, document_id: str) -> Accepted:
        """Process a document again from its original: after a change of model or rules."""
        repository = self._service.repository
        row = await repository.get(document_id)
        if row is None:
            raise InvalidInput(f"there is no document {document_id}")
        if row.artifact is None:
            raise InvalidInput(f"the original of {shown(row.name)} was not kept; add it again")
        try:
            job = await self._service.app.get(document_id)
        except JobNotFound:
            # Its job is no longer in the history: a new version takes its place.
            content = b"".join([piece async for piece in await self.original(row)])
            return await self._enqueue(_whole(content), len(content), _new(row), again=True)
        if row.status != Status.PROCESSING and not job.status.final:
            job = await self._ended(row)
        if job.status.final:
            await repository.begin(_new(row), max(row.token, job.token))
            try:
                await self._service.app.retry(document_id, from_stage=FIRST_STAGE)
            except InvalidInput:
                # It has ended before its first stage did.
                await self._service.app.retry(document_id)
        return Accepted(
            document_id=document_id,
            job_id=document_id,
            name=row.name,
            status=Status.PROCESSING,
        )

    async def _ended(self, row: DocumentRow) -> Job:
        """Return the job of a document that is stored: its outcome follows in a moment, and only
        then it can be run again.
        """
        app = self._service.app
        with contextlib.suppress(JobFailed, ResultTimeout):
            await app.result(row.document_id, timeout=ENDING_SECONDS)
        job = await app.get(row.document_id)
        if not job.status.final:
            raise JobConflict(f"{shown(row.name)} is still being processed; try again in a moment")
        return job

    async def _enqueue(
        self,
        content: AsyncIterator[bytes],
        size: int,
        document: NewDocument,
        *,
        again: bool = False,
    ) -> Accepted:
        """Store the original, the row and the job in this order: of what a crash leaves, upkeep
        removes the file, and the row is found to have no job. `again`: although the same file is
        there.
        """
        service = self._service
        job = service.app.job(
            TASK, {"name": document.name, "path": document.path, "size": size}, source="api"
        )
        artifact = await service.put_original(job.id, content)
        row = replace(document, document_id=job.id, artifact=artifact)
        if again:
            await service.repository.begin(row, 0)
        elif (same := await service.repository.add(row)) is not None:
            # Somebody has handed it in at the same time.
            await service.remove_original(artifact)
            return known(same)
        await service.keep_original(artifact, row.name)
        await service.app.enqueue(job)
        return Accepted(document_id=job.id, job_id=job.id, name=row.name, status=Status.PROCESSING)

    async def _same(self, path: str, sha256: str) -> DocumentRow | None:
        """Return the document with these bytes at this path that is completed or will be."""
        for row in await self._service.repository.find_all_same(path, sha256):
            reconciled = await self._reconciled(row)
            if reconciled.status in (Status.COMPLETED, Status.PROCESSING):
                return reconciled
        return None

    async def _reconciled(self, row: DocumentRow) -> DocumentRow:
        """Return the row as it should be by the state of its job, and write it if it is not."""
        if row.status not in (Status.PROCESSING, Status.FAILED):
            return row
        repository = self._service.repository
        try:
            job = await self._service.app.get(row.document_id)
        except JobNotFound:
            if row.status == Status.FAILED or _age(row) < GRACE_SECONDS:
                return row
            await repository.fail(
                row.document_id, row.token, "Its job is gone; hand the document in again."
            )
            return await repository.get(row.document_id) or row
        if row.status == Status.FAILED:
            if job.status.final:
                return row
            # Somebody has retried the job.
            await repository.begin(_new(row), max(row.token, job.token))
        elif job.status.final and job.status != JobStatus.COMPLETED:
            await repository.fail(row.document_id, max(row.token, job.token), reason_of(job))
        else:
            return row
        return await repository.get(row.document_id) or row


def read_metadata(text: str) -> dict[str, Any]:
    """Return the metadata that a caller sent as JSON. Raises `ValidationError`."""
    if len(text.encode()) > LARGEST_METADATA:
        raise ValidationError(f"metadata has more than {LARGEST_METADATA:,} bytes")
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ValidationError(f"metadata is not a JSON object: {error}") from None


def reason_of(job: Job) -> str:
    """Return why a job did not complete, in one sentence."""
    if job.status == JobStatus.CANCELLED:
        return f"It was cancelled: {job.error}" if job.error else "It was cancelled."
    if job.status == JobStatus.TIMEOUT:
        return job.error or "It took too long."
    return job.error or "It failed."


def _new(row: DocumentRow) -> NewDocument:
    return NewDocument(
        document_id=row.document_id,
        name=row.name,
        path=row.path,
        sha256=row.sha256,
        owner=row.owner,
        metadata=row.metadata,
    )


def _age(row: DocumentRow) -> float:
    return (datetime.now(UTC) - row.created_at).total_seconds()


class _Content(NamedTuple):
    """The checksum and the size of a file."""

    sha256: str
    size: int


async def _read(source: Source) -> _Content:
    await source.seek(0)
    digest, size = hashlib.sha256(), 0
    async for piece in _pieces(source):
        digest.update(piece)
        size += len(piece)
    return _Content(digest.hexdigest(), size)


async def _all(steps: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Do all, whatever becomes of the others; then raise what the first one that failed did."""
    done = await asyncio.gather(*steps, return_exceptions=True)
    for each in done:
        if isinstance(each, BaseException):
            raise each
    return [each for each in done if not isinstance(each, BaseException)]


async def _whole(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _pieces(source: Source) -> AsyncIterator[bytes]:
    while piece := await source.read(PIECE):
        yield piece
