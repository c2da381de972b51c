"""The task `ingest.document`: read, cut, mask, embed, and store a document.

The unmasked text is in the memory of one attempt alone: it is no value of a stage, and no error
repeats it. An attempt that is killed leaves nothing half done; the next begins anew.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from headrace import (
    BUGS,
    App,
    AuthenticationError,
    Context,
    HeadraceError,
    ParserError,
    RetryLater,
    ValidationError,
)
from headrace.bundles import Setup
from headrace_ingest.chunking import Chunk, split
from headrace_ingest.embedding import Vectors, embed_chunks
from headrace_ingest.masking import MaskedChunks
from headrace_ingest.names import shown
from headrace_ingest.parsing.parsed import Parsed
from headrace_ingest.row_progress import RowProgress
from headrace_ingest.service import QUEUE, TASK, IngestService
from headrace_ingest.store.records import DocumentRow, NewDocument, Outcome, Processed, Status

NEVER_RETRY: tuple[type[Exception], ...] = (
    ParserError,
    ValidationError,
    AuthenticationError,
    *BUGS,
)
TIMEOUT_SECONDS = 3600.0
EVENT = "document.processed.v1"

T = TypeVar("T")

# The progress at which each stage is shown.
PROGRESS = {
    "parsing": 2,
    "parsed": 20,
    "chunking": 22,
    "chunked": 25,
    "masking": 27,
    "masked": 45,
    "embedding": 47,
    "embedded": 90,
    "storing": 92,
}


class ProcessingError(HeadraceError):
    """A step failed for a reason that may have parts of the document in its text, so that only its
    kind is told. Worth a retry.
    """


class DocumentProcessed(msgspec.Struct, kw_only=True):
    """What became of a document: the result of its job, and the body of the event
    `document.processed.v1`.
    """

    document_id: str
    outcome: str
    name: str = ""
    path: str = ""
    chunks: int = 0
    characters: int = 0
    personal_data: dict[str, int] = {}
    model: str | None = None
    seconds: dict[str, float] = {}


def register(app: App, setup: Setup) -> None:
    """Add the task."""
    service = IngestService(setup)

    @app.task(TASK, queue=QUEUE, retries=3, never_retry=NEVER_RETRY, timeout=TIMEOUT_SECONDS)
    async def document(ctx: Context, name: str, path: str, size: int) -> DocumentProcessed:
        """Process one document. It is handed in by `POST /ingest/documents`."""
        return await _Attempt(service, ctx, size).run()

    app.event_type(EVENT, DocumentProcessed, summary="A document was processed and can be found.")


class _Gone(Exception):
    """There is nothing left to do for this attempt."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


@dataclass
class _Attempt:
    """One attempt at one document."""

    service: IngestService
    ctx: Context
    size: int

    def __post_init__(self) -> None:
        self.document_id = self.ctx.job_id
        self.repository = self.service.repository
        self.progress = RowProgress(self.repository, self.document_id, self.ctx.token)
        self.seconds: dict[str, float] = {}

    async def run(self) -> DocumentProcessed:
        row = await self.repository.get(self.document_id)
        if row is None:
            return DocumentProcessed(document_id=self.document_id, outcome=Outcome.GONE)
        if row.status in (Status.COMPLETED, Status.REPLACED):
            # The attempt before has stored it, and was killed before it could say so.
            return await self._finished(row)
        try:
            async with self.progress:
                return await self._process(row)
        except _Gone as gone:
            return DocumentProcessed(document_id=self.document_id, outcome=gone.outcome)
        except Exception as error:
            if self._is_last(error):
                await self.repository.fail(self.document_id, self.ctx.token, str(error))
            raise

    async def _process(self, row: DocumentRow) -> DocumentProcessed:
        self._check(await self.repository.begin(_new(row), self.ctx.token))
        settings = self.service.settings
        parsed = await self._stage("parsing", "parsed", lambda: self._parse(row))
        chunks = await self._stage(
            "chunking",
            "chunked",
            lambda: asyncio.to_thread(
                split,
                parsed.text,
                chunk_size=settings.chunk_size,
                overlap_size=settings.overlap_size,
            ),
        )
        masked = await self._stage(
            "masking",
            "masked",
            lambda: self.service.masker.mask(parsed.text, chunks),
        )
        vectors = await self._stage("embedding", "embedded", lambda: self._embed(masked.chunks))
        return await self._store(parsed, masked, vectors)

    async def _parse(self, row: DocumentRow) -> Parsed:
        if row.artifact is None:
            raise ValidationError(f"the original of {shown(row.name)} was not kept; add it again")
        content = self.service.open_original(row.artifact, row.name)
        return await self.service.pool.parse(content, self.size, row.name)

    async def _embed(self, chunks: Sequence[Chunk]) -> list[Mapping[int, Vectors]]:
        """Embed in batches, and show how far it is after each."""
        size = self.service.settings.batch_size
        vectors: list[Mapping[int, Vectors]] = []
        span = PROGRESS["embedded"] - PROGRESS["embedding"]
        for start in range(0, len(chunks), size):
            texts = [chunk.text for chunk in chunks[start : start + size]]
            vectors += await embed_chunks(self.service.embedder, texts, batch_size=size)
            done = PROGRESS["embedding"] + span * len(vectors) // len(chunks)
            self._show("embedding", min(done, PROGRESS["embedded"] - 1))
        return vectors

    async def _store(
        self, parsed: Parsed, masked: MaskedChunks, vectors: Sequence[Mapping[int, Vectors]]
    ) -> DocumentProcessed:
        processed = Processed(
            document_id=self.document_id,
            characters=len(parsed.text),
            model=self.service.embedder.name,
            media_type=parsed.media_type,
            personal_data=dict(masked.found),
        )
        stored = await self._stage(
            "storing",
            "completed",
            lambda: self.repository.store(processed, masked.chunks, vectors, self.ctx.token),
        )
        self._check(stored.outcome)
        row = await self.repository.get(self.document_id)
        if row is None:
            raise _Gone(Outcome.GONE)
        return await self._finished(row)

    async def _finished(self, row: DocumentRow) -> DocumentProcessed:
        """Remove originals that are not needed any more; return what became of the document."""
        for older in await self.repository.replaced_by(self.document_id):
            await self.service.remove_original(older.artifact)
        if row.status == Status.REPLACED or not self.service.settings.keep_originals:
            await self.service.remove_original(row.artifact)
        self.ctx.progress(100, "completed")
        replaced = row.status == Status.REPLACED
        processed = DocumentProcessed(
            document_id=self.document_id,
            name=row.name,
            path=row.path,
            outcome=Outcome.SUPERSEDED if replaced else Outcome.STORED,
            chunks=row.chunks,
            characters=row.characters,
            personal_data=dict(row.personal_data),
            model=row.model,
            seconds=self.seconds,
        )
        if not replaced:
            self.ctx.publish(EVENT, processed, key=self.document_id)
        return processed

    async def _stage(self, name: str, done: str, function: Callable[[], Awaitable[T]]) -> T:
        """Show a stage while it runs, in the row and in the job, and that it is done. Its value is
        never stored, and what goes wrong in it is told without the text of the document.
        """

        async def guarded() -> T:
            try:
                return await function()
            except (HeadraceError, _Gone):
                raise
            except Exception as error:
                kind = type(error).__name__
                message = f"{name} failed by an error of the program: {kind}"
                # A bug is not worth a retry, and stays one under another text.
                raise (type(error) if type(error) in BUGS else ProcessingError)(message) from None

        self._show(name, PROGRESS[name])
        began = time.monotonic()
        result = await self.ctx.stage(name, guarded, done=done, transient=True)
        self.seconds[name] = round(time.monotonic() - began, 3)
        if done in PROGRESS:
            self._show(done, PROGRESS[done])
        return result

    def _show(self, stage: str, progress: int) -> None:
        self.ctx.progress(progress, stage)
        self._check(self.progress.show(stage, progress))

    def _is_last(self, error: Exception) -> bool:
        """Return whether no further attempt will follow this error."""
        if isinstance(error, NEVER_RETRY):
            return True
        return self.ctx.attempt >= self.ctx.max_attempts and not isinstance(error, RetryLater)

    @staticmethod
    def _check(outcome: Outcome) -> None:
        if outcome in (Outcome.GONE, Outcome.STALE):
            raise _Gone(outcome)


def _new(row: DocumentRow) -> NewDocument:
    return NewDocument(document_id=row.document_id, name=row.name, path=row.path, sha256=row.sha256)
