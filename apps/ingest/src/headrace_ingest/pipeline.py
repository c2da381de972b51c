"""The task `ingest.document`: read, cut, mask, embed, and store a document.

The unmasked text is in the memory of one attempt alone: it is no value of a stage, and no error
repeats it. An attempt that is killed leaves nothing half done. Until masking has finished the next
one begins anew; from there on it goes on with what finished stages have left in the tables.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
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
from headrace_ingest.embedding import embed_chunks
from headrace_ingest.names import shown
from headrace_ingest.parsing.parsed import Parsed
from headrace_ingest.row_progress import RowProgress
from headrace_ingest.service import QUEUE, TASK, IngestService
from headrace_ingest.store.records import DocumentRow, Outcome, Processed, Status, Stored
from headrace_ingest.store.work import ChunkVectors, MaskedText, Work

NEVER_RETRY: tuple[type[Exception], ...] = (
    ParserError,
    ValidationError,
    AuthenticationError,
    *BUGS,
)
TIMEOUT_SECONDS = 3600.0
EVENT = "document.processed.v1"
# What is not masked is never stored; until then each attempt makes it anew.
UNTIL_MASKED = "masking"

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
        """Of the stages that this attempt has run."""
        self.work = Work(self.repository, self.document_id, self.ctx.token)

    async def run(self) -> DocumentProcessed:
        begun = await self.repository.resume(self.document_id, self.ctx.token)
        row = begun.row
        if row is None or begun.outcome is Outcome.STALE:
            return DocumentProcessed(document_id=self.document_id, outcome=begun.outcome)
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
        parsed = await self._stage("parsing", "parsed", lambda: self._parse(row), UNTIL_MASKED)
        cut = await self._stage("chunking", "chunked", lambda: self._cut(row, parsed), UNTIL_MASKED)
        made = await self._stage("masking", "masked", lambda: self._mask(row, cut))
        masked = (
            made if made is not None else await self._guarded("masking", lambda: self._left(row))
        )
        chunks = masked.chunks
        fresh = await self._stage("embedding", "embedded", lambda: self._embed(chunks))
        vectors = (
            fresh
            if fresh is not None
            else await self._guarded("embedding", lambda: self._embed(chunks))
        )
        return await self._store(masked, vectors)

    async def _parse(self, row: DocumentRow) -> Parsed:
        if row.artifact is None:
            raise ValidationError(f"the original of {shown(row.name)} was not kept; add it again")
        content = self.service.open_original(row.artifact, row.name)
        return await self.service.pool.parse(content, self.size, row.name)

    async def _cut(self, row: DocumentRow, parsed: Parsed | None) -> tuple[Parsed, list[Chunk]]:
        """Return the text and its chunks. It is read anew where it is gone."""
        parsed = parsed or await self._parse(row)
        sizes = self.service.settings.chunk_size, self.service.settings.overlap_size
        return parsed, await asyncio.to_thread(
            split, parsed.text, chunk_size=sizes[0], overlap_size=sizes[1]
        )

    async def _mask(self, row: DocumentRow, cut: tuple[Parsed, list[Chunk]] | None) -> MaskedText:
        """Mask the chunks, and leave them to later attempts."""
        parsed, chunks = cut or await self._cut(row, None)
        found = await self.service.masker.mask(parsed.text, chunks)
        masked = MaskedText(
            chunks=found.chunks,
            personal_data=dict(found.found),
            characters=len(parsed.text),
            media_type=parsed.media_type,
        )
        self._check(await self.work.leave_masked(masked))
        return masked

    async def _left(self, row: DocumentRow) -> MaskedText:
        """Return what an earlier attempt has masked. It is gone, and made anew, if somebody has run
        the job again after the document was stored.
        """
        return await self.work.masked() or await self._mask(row, None)

    async def _embed(self, chunks: Sequence[Chunk]) -> list[ChunkVectors]:
        """Embed in batches, and show how far it is after each. Those that an earlier attempt has
        left are not done again.
        """
        size = self.service.settings.batch_size
        vectors: list[ChunkVectors] = []
        span = PROGRESS["embedded"] - PROGRESS["embedding"]
        for start in range(0, len(chunks), size):
            texts = [chunk.text for chunk in chunks[start : start + size]]
            left = await self.work.vectors(start, len(texts), self.service.embedder)
            vectors += left or await self._embed_batch(start, texts)
            done = PROGRESS["embedding"] + span * len(vectors) // len(chunks)
            self._show("embedding", min(done, PROGRESS["embedded"] - 1))
        return vectors

    async def _embed_batch(self, start: int, texts: Sequence[str]) -> Sequence[ChunkVectors]:
        embedder = self.service.embedder
        vectors = await embed_chunks(embedder, texts, batch_size=self.service.settings.batch_size)
        self._check(await self.work.leave_vectors(start, vectors, embedder))
        return vectors

    async def _store(
        self, masked: MaskedText, vectors: Sequence[ChunkVectors]
    ) -> DocumentProcessed:
        processed = Processed(
            document_id=self.document_id,
            characters=masked.characters,
            model=self.service.embedder.name,
            media_type=masked.media_type,
            personal_data=masked.personal_data,
        )

        async def store() -> Stored:
            stored = await self.repository.store(processed, masked.chunks, vectors, self.ctx.token)
            self._check(stored.outcome)
            return stored

        # Whether it is stored is known by its row.
        stored = await self._stage("storing", "completed", store, True)
        if stored is not None and stored.row is not None:
            return await self._finished(stored.row, stored.replaced)
        row = await self.repository.get(self.document_id)
        if row is None:
            raise _Gone(Outcome.GONE)
        return await self._finished(row)

    async def _finished(
        self, row: DocumentRow, replaced: Sequence[DocumentRow] | None = None
    ) -> DocumentProcessed:
        """Remove originals that are not needed any more; return what became of the document.
        `replaced` are the versions that it has replaced; None: they are looked up.
        """
        if replaced is None:
            replaced = await self.repository.replaced_by(self.document_id)
        for older in replaced:
            await self.service.remove_original(older.artifact)
        if row.status == Status.REPLACED or not self.service.settings.keep_originals:
            await self.service.remove_original(row.artifact)
        self.ctx.progress(100, "completed")
        superseded = row.status == Status.REPLACED
        processed = DocumentProcessed(
            document_id=self.document_id,
            name=row.name,
            path=row.path,
            outcome=Outcome.SUPERSEDED if superseded else Outcome.STORED,
            chunks=row.chunks,
            characters=row.characters,
            personal_data=dict(row.personal_data),
            model=row.model,
            seconds=self.seconds,
        )
        if not superseded:
            self.ctx.publish(EVENT, processed, key=self.document_id)
        return processed

    async def _stage(
        self,
        name: str,
        done: str,
        function: Callable[[], Awaitable[T]],
        transient: bool | str = False,
    ) -> T | None:
        """Show a stage while it runs, in the row and in the job, and that it is done. Returns what
        it made, which is stored by no stage, or None if an earlier attempt has finished it.
        """
        ran: list[T] = []

        async def run() -> None:
            self._show(name, PROGRESS[name])
            began = time.monotonic()
            ran.append(await self._guarded(name, function))
            self.seconds[name] = round(time.monotonic() - began, 3)

        await self.ctx.stage(name, run, done=done, transient=transient)
        if ran and done in PROGRESS:
            self._show(done, PROGRESS[done])
        return ran[0] if ran else None

    @staticmethod
    async def _guarded(name: str, function: Callable[[], Awaitable[T]]) -> T:
        """Do something for a stage; what goes wrong is told without the text of the document."""
        try:
            return await function()
        except (HeadraceError, _Gone):
            raise
        except Exception as error:
            kind = type(error).__name__
            message = f"{name} failed by an error of the program: {kind}"
            # A bug is not worth a retry, and stays one under another text.
            raise (type(error) if type(error) in BUGS else ProcessingError)(message) from None

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
