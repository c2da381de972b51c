"""Writes and reads documents. Each write is one transaction, guarded by the token of the attempt.

Tokens grow with each attempt at a job. A write with a lower token than the stored one belongs to an
attempt that was given up, and changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from headrace import InvalidInput
from headrace_ingest.chunking import Chunk
from headrace_ingest.embedding import Vectors
from headrace_ingest.store.records import (
    Begun,
    DocumentPage,
    DocumentRow,
    NewDocument,
    Outcome,
    Processed,
    Status,
    Stored,
    Totals,
    clean_path,
)
from headrace_ingest.store.statements import (
    CHANGES,
    CHUNKS,
    DOCUMENTS,
    WORK,
    count_changes,
    document_of,
    forget_work,
    insert_row,
    insert_work,
    is_later,
    lock,
    place_of,
    read_others,
    read_replaced,
    read_row,
    read_same,
    retire,
    rows_of,
    show_progress,
    update_row,
    within,
)
from headrace_ingest.store.vectors import VectorFormat, read_format

COMPLETED_STAGE = "completed"
RESTARTED = {"status": Status.PROCESSING, "stage": "", "progress": 0, "error": None}
LONGEST_ERROR = 2000
PAGE = 50
LARGEST_PAGE = 500
INSERT_AT_ONCE = 500
MOST_PATHS = 1000
# Before it there was no attempt that could have left anything.
FIRST_TOKEN = 1


class Repository:
    """The documents of one database."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        # The same connections, for what is one statement and needs no transaction around it.
        self._single = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._format: VectorFormat | None = None

    async def resume(self, document_id: str, token: int) -> Begun:
        """Write that an attempt begins, at progress 0, unless the document is stored already."""
        async with self._writing(document_id) as connection:
            row = await read_row(connection, document_id)
            if row is None:
                return Begun(Outcome.GONE, None)
            if row.status in (Status.COMPLETED, Status.REPLACED):
                return Begun(Outcome.STORED, row)
            return Begun(await update_row(connection, row, token, RESTARTED), row)

    async def begin(self, document: NewDocument, token: int) -> Outcome:
        """Write the status row of a document that is now being processed, at progress 0.

        A document that was deleted is `GONE`: it does not come back.
        """
        async with self._writing(document.document_id) as connection:
            if await connection.scalar(
                sa.select(CHANGES.c.deleted).where(CHANGES.c.document_id == document.document_id)
            ):
                return Outcome.GONE
            row = await read_row(connection, document.document_id)
            if row is not None:
                return await update_row(connection, row, token, RESTARTED)
            await insert_row(connection, document, token)
        return Outcome.STORED

    async def add(self, document: NewDocument) -> DocumentRow | None:
        """Write the row of a document that is handed in, unless there is one with the same bytes at
        the same path that is completed or will be: then return that one.
        """
        async with self._writing(f"{clean_path(document.path)}\n{document.sha256}") as connection:
            same = await read_same(connection, clean_path(document.path), document.sha256)
            if same:
                return same[0]
            await insert_row(connection, document, 0)
        return None

    async def show(self, document_id: str, token: int, stage: str, progress: int) -> Outcome:
        """Write the stage and the progress (0 to 99) of an attempt. Neither goes back, except that
        a new attempt begins where it begins.
        """
        async with self._single.connect() as connection:
            if await show_progress(connection, document_id, token, stage, progress):
                return Outcome.STORED
            row = await read_row(connection, document_id)
        if row is None:
            return Outcome.GONE
        return Outcome.STALE if row.token > token else Outcome.STORED

    async def save_work(
        self, document_id: str, token: int, part: str, content: bytes, *, only: bool = False
    ) -> Outcome:
        """Keep what a stage has made of a document until it is stored. `only`: all other parts go,
        which were made of something else.
        """
        others = only and token > FIRST_TOKEN
        async with self._writing(document_id) if others else self._single.connect() as connection:
            if await insert_work(connection, document_id, token, part, content):
                if others:
                    await forget_work(connection, document_id, but=part)
                return Outcome.STORED
            row = await read_row(connection, document_id)
        return Outcome.GONE if row is None else Outcome.STALE

    async def read_work(self, document_id: str, part: str) -> bytes | None:
        """Return what a stage has made of a document; None if it is not there."""
        query = sa.select(WORK.c.content).where(
            WORK.c.document_id == document_id, WORK.c.part == part
        )
        async with self._engine.connect() as connection:
            content: bytes | None = await connection.scalar(query)
        return content

    async def fail(self, document_id: str, token: int, error: str) -> Outcome:
        """Write that an attempt was the last one and has failed. What was stored of an earlier
        version stays.
        """
        async with self._writing(document_id) as connection:
            row = await read_row(connection, document_id)
            if row is None:
                return Outcome.GONE
            if row.token == token and row.status in (Status.COMPLETED, Status.REPLACED):
                return Outcome.STALE
            failed = {"status": Status.FAILED, "error": error[:LONGEST_ERROR]}
            return await update_row(connection, row, token, failed)

    async def find_same(self, path: str, sha256: str) -> DocumentRow | None:
        """Return the completed document with these bytes at this path, if there is one."""
        query = sa.select(DOCUMENTS).where(
            DOCUMENTS.c.path == clean_path(path),
            DOCUMENTS.c.sha256 == sha256,
            DOCUMENTS.c.status == Status.COMPLETED,
        )
        async with self._engine.connect() as connection:
            row = (await connection.execute(query.limit(1))).mappings().first()
        return None if row is None else document_of(row)

    async def find_all_same(self, path: str, sha256: str) -> list[DocumentRow]:
        """Return the documents with these bytes at this path that are or may become current."""
        async with self._engine.connect() as connection:
            return await read_same(connection, clean_path(path), sha256)

    async def replaced_by(self, document_id: str) -> list[DocumentRow]:
        """Return the older versions that a document has replaced."""
        async with self._engine.connect() as connection:
            return await read_replaced(connection, document_id)

    async def totals(self) -> Totals:
        """Return how much there is."""
        current = DOCUMENTS.c.status == Status.COMPLETED
        async with self._engine.connect() as connection:
            counted = await connection.execute(
                sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(DOCUMENTS.c.chunks), 0))
                .select_from(DOCUMENTS)
                .where(current)
            )
            documents, chunks = counted.one()
            paths = await connection.scalars(
                sa.select(DOCUMENTS.c.path).distinct().order_by(DOCUMENTS.c.path).limit(MOST_PATHS)
            )
            return Totals(documents, int(chunks), list(paths))

    async def store(
        self,
        processed: Processed,
        chunks: Sequence[Chunk],
        vectors: Sequence[Mapping[int, Vectors]],
        token: int,
    ) -> Stored:
        """Store a document's chunks and vectors and complete it, all or nothing.

        `vectors` are those of each chunk by sentence number, `chunks` have masked texts. The
        version that was current at the same path and name is replaced in the same transaction.
        """
        if len(chunks) != len(vectors):
            raise InvalidInput(f"{len(chunks)} chunks have {len(vectors)} sets of vectors")
        document_id = processed.document_id
        vector_format = await self._vector_format()
        # Before the transaction: others wait for it.
        rows = await asyncio.to_thread(rows_of, document_id, chunks, vectors, vector_format)
        async with self._writing(document_id) as connection:
            row = await read_row(connection, document_id)
            if row is None:
                return Stored(Outcome.GONE)
            if row.token > token:
                return Stored(Outcome.STALE)
            if row.token == token and row.status == Status.COMPLETED:
                return Stored(Outcome.STORED, await read_replaced(connection, document_id), row)
            if row.token == token and row.status == Status.REPLACED:
                return Stored(Outcome.SUPERSEDED, row=row)
            await lock(connection, f"{row.path}\n{row.name}")
            older = await read_others(connection, row)
            later = next((other for other in older if is_later(other, row)), None)
            if later is not None:
                await retire(connection, row, later.document_id, token)
                await count_changes(connection, [document_id], deleted=False)
                return Stored(Outcome.SUPERSEDED, row=await read_row(connection, document_id))
            for other in older:
                await retire(connection, other, document_id, other.token)
            await connection.execute(CHUNKS.delete().where(CHUNKS.c.document_id == document_id))
            await forget_work(connection, document_id)
            for table, values in ((CHUNKS.insert(), rows[0]), (vector_format.insert, rows[1])):
                for start in range(0, len(values), INSERT_AT_ONCE):
                    await connection.execute(table, values[start : start + INSERT_AT_ONCE])
            completed: dict[str, Any] = {
                "status": Status.COMPLETED,
                "stage": COMPLETED_STAGE,
                "progress": 100,
                "error": None,
                "characters": processed.characters,
                "chunks": len(chunks),
                "personal_data": dict(processed.personal_data),
                "model": processed.model,
                "media_type": processed.media_type or row.media_type,
                "version": max([row.version, *(other.version + 1 for other in older)]),
            }
            await update_row(connection, row, token, completed)
            changed = [document_id, *(other.document_id for other in older)]
            await count_changes(connection, changed, deleted=False)
            replaced = await read_replaced(connection, document_id)
            return Stored(Outcome.STORED, replaced, replace(row, **completed, token=token))

    async def delete(self, document_id: str) -> DocumentRow | None:
        """Delete a document with its chunks and vectors; return what it was, None if there is
        none. A job that still works on it stores nothing.
        """
        async with self._writing(document_id) as connection:
            row = await read_row(connection, document_id)
            if row is not None:
                await connection.execute(
                    DOCUMENTS.delete().where(DOCUMENTS.c.document_id == document_id)
                )
                await count_changes(connection, [document_id], deleted=True)
        return row

    async def get(self, document_id: str) -> DocumentRow | None:
        """Return a document; None if there is none."""
        async with self._engine.connect() as connection:
            return await read_row(connection, document_id)

    async def list(
        self,
        path: str = "/",
        status: Status | None = None,
        *,
        limit: int = PAGE,
        after: str | None = None,
    ) -> DocumentPage:
        """Return documents within a path, the newest first; replaced ones only if asked for."""
        query = sa.select(DOCUMENTS).where(within(clean_path(path)))
        if status is None:
            query = query.where(DOCUMENTS.c.status != Status.REPLACED)
        else:
            query = query.where(DOCUMENTS.c.status == status)
        if after is not None:
            query = query.where(
                sa.tuple_(DOCUMENTS.c.created_at, DOCUMENTS.c.document_id) < place_of(after)
            )
        limit = min(max(limit, 1), LARGEST_PAGE)
        query = query.order_by(DOCUMENTS.c.created_at.desc(), DOCUMENTS.c.document_id.desc())
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query.limit(limit + 1))).mappings().all()
        documents = [document_of(row) for row in rows[:limit]]
        more = len(rows) > limit
        last = rows[limit - 1] if more else None
        place = None if last is None else f"{last['created_at']!r}~{last['document_id']}"
        return DocumentPage(documents, place)

    async def _vector_format(self) -> VectorFormat:
        if self._format is None:
            async with self._engine.connect() as connection:
                self._format = await read_format(connection)
        return self._format

    @asynccontextmanager
    async def _writing(self, name: str) -> AsyncIterator[AsyncConnection]:
        """A transaction beside which nobody else writes what has this name, such as a document."""
        async with self._engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                # The driver would begin one that only reads, which cannot always become a writer.
                await connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                await lock(connection, name)
                yield connection
                await connection.commit()
            except BaseException:
                await connection.rollback()
                raise
