"""Statements of the repository, within a transaction of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from time import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from headrace import InvalidInput
from headrace_ingest.chunking import Chunk
from headrace_ingest.embedding import Vectors
from headrace_ingest.search.words import pack, terms_of
from headrace_ingest.store.records import DocumentRow, NewDocument, Outcome, Status, clean_path
from headrace_ingest.store.tables import (
    ChangeCounter,
    Document,
    DocumentChange,
    DocumentChunk,
    DocumentWork,
    table_of,
)
from headrace_ingest.store.vectors import VectorFormat

DOCUMENTS = table_of(Document)
CHUNKS = table_of(DocumentChunk)
WORK = table_of(DocumentWork)
CHANGES = table_of(DocumentChange)
COUNTER = table_of(ChangeCounter)

# Those that each document needs are put together once, and not for each of them.
_READ = sa.select(DOCUMENTS).where(DOCUMENTS.c.document_id == sa.bindparam("of"))
_FURTHER = sa.and_(
    DOCUMENTS.c.token == sa.bindparam("by"),
    DOCUMENTS.c.status == Status.PROCESSING,
    DOCUMENTS.c.progress <= sa.bindparam("done"),
)
_SHOW = (
    DOCUMENTS.update()
    .where(
        DOCUMENTS.c.document_id == sa.bindparam("of"),
        sa.or_(DOCUMENTS.c.token < sa.bindparam("by"), _FURTHER),
    )
    .values(
        status=Status.PROCESSING,
        stage=sa.bindparam("at"),
        progress=sa.bindparam("done"),
        error=None,
        token=sa.bindparam("by"),
        updated_at=sa.bindparam("now"),
    )
)


def _insert_work(insert: Any) -> Any:
    """Return the statement of `insert_work` for one kind of database."""
    current = (
        sa.select(
            sa.bindparam("of", type_=sa.Text),
            sa.bindparam("named", type_=sa.Text),
            sa.bindparam("made", type_=sa.LargeBinary),
        )
        .where(
            DOCUMENTS.c.document_id == sa.bindparam("of"),
            DOCUMENTS.c.token <= sa.bindparam("by"),
        )
        # Beside an attempt that begins: one waits for the other. SQLite has one writer anyway.
        .with_for_update(key_share=True)
    )
    statement = insert(WORK).from_select(["document_id", "part", "content"], current)
    return statement.on_conflict_do_update(
        index_elements=[WORK.c.document_id, WORK.c.part],
        set_={"content": statement.excluded.content},
    )


_INSERT_WORK = {
    "postgresql": _insert_work(postgresql.insert),
    "sqlite": _insert_work(sqlite.insert),
}
_LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")


def chunk_id_of(document_id: str, position: int) -> str:
    """Return the id of a chunk: the same for every attempt."""
    return f"{document_id}.{position}"


def within(path: str) -> sa.ColumnElement[bool]:
    """Return the condition for documents at a path or below it."""
    if path == "/":
        return sa.true()
    column = DOCUMENTS.c.path
    # "0" follows "/". LIKE would not tell capital letters apart in SQLite.
    return sa.or_(column == path, sa.and_(column >= f"{path}/", column < f"{path}0"))


def rows_of(
    document_id: str,
    chunks: Sequence[Chunk],
    vectors: Sequence[Mapping[int, Vectors]],
    vector_format: VectorFormat,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    texts: list[dict[str, Any]] = []
    embeddings: list[dict[str, Any]] = []
    for chunk, numbered in zip(chunks, vectors, strict=True):
        chunk_id = chunk_id_of(document_id, chunk.order)
        texts.append(
            {
                "chunk_id": chunk_id,
                "document_id": document_id,
                "position": chunk.order,
                "start": chunk.begin,
                "end": chunk.end,
                # PostgreSQL has no such letter.
                "text": chunk.text.replace("\0", "\ufffd"),
                "terms": pack(terms_of(chunk.text)),
            }
        )
        for number, vector in numbered.items():
            packed = vector_format.pack(vector)
            embeddings.append({"chunk_id": chunk_id, "sentence": number, "vector": packed})
    return texts, embeddings


async def lock(connection: AsyncConnection, name: str) -> None:
    """Others with this name wait until the transaction ends; in SQLite they do so anyway."""
    if connection.dialect.name == "postgresql":
        await connection.execute(_LOCK, {"name": f"headrace_ingest {name}"})


async def read_row(connection: AsyncConnection, document_id: str) -> DocumentRow | None:
    row = (await connection.execute(_READ, {"of": document_id})).mappings().first()
    return None if row is None else document_of(row)


async def insert_row(connection: AsyncConnection, document: NewDocument, token: int) -> None:
    """Write the row of a new document, at progress 0."""
    now = time()
    await connection.execute(
        DOCUMENTS.insert().values(
            document_id=document.document_id,
            name=document.name,
            path=clean_path(document.path),
            sha256=document.sha256,
            media_type=document.media_type,
            status=Status.PROCESSING,
            stage="",
            progress=0,
            characters=0,
            chunks=0,
            personal_data={},
            metadata=dict(document.metadata),
            owner=document.owner,
            token=token,
            version=1,
            artifact=document.artifact,
            created_at=document.created_at or now,
            updated_at=now,
        )
    )


async def read_same(connection: AsyncConnection, path: str, sha256: str) -> list[DocumentRow]:
    """Return the documents with these bytes at this path that are completed or may become so."""
    query = sa.select(DOCUMENTS).where(
        DOCUMENTS.c.path == path,
        DOCUMENTS.c.sha256 == sha256,
        DOCUMENTS.c.status.in_([Status.COMPLETED, Status.PROCESSING]),
    )
    return [document_of(row) for row in (await connection.execute(query)).mappings()]


async def update_row(
    connection: AsyncConnection, row: DocumentRow, token: int, values: dict[str, Any]
) -> Outcome:
    """Change a document's row, unless a later attempt has."""
    changed = await connection.execute(
        DOCUMENTS.update()
        .where(DOCUMENTS.c.document_id == row.document_id, DOCUMENTS.c.token <= token)
        .values(**values, token=token, updated_at=time())
    )
    return Outcome.STORED if changed.rowcount else Outcome.STALE


async def read_others(connection: AsyncConnection, row: DocumentRow) -> list[DocumentRow]:
    """Return the completed documents of the same path and name."""
    query = sa.select(DOCUMENTS).where(
        DOCUMENTS.c.path == row.path,
        DOCUMENTS.c.name == row.name,
        DOCUMENTS.c.status == Status.COMPLETED,
        DOCUMENTS.c.document_id != row.document_id,
    )
    return [document_of(other) for other in (await connection.execute(query)).mappings()]


def is_later(other: DocumentRow, row: DocumentRow) -> bool:
    return (other.created_at, other.document_id) > (row.created_at, row.document_id)


async def retire(connection: AsyncConnection, row: DocumentRow, by: str, token: int) -> None:
    """Keep of a document only its row, which says what it was replaced by."""
    await connection.execute(CHUNKS.delete().where(CHUNKS.c.document_id == row.document_id))
    await forget_work(connection, row.document_id)
    replaced = {"status": Status.REPLACED, "replaced_by": by, "chunks": 0}
    await update_row(connection, row, token, replaced)


async def show_progress(
    connection: AsyncConnection, document_id: str, token: int, stage: str, progress: int
) -> bool:
    """Write the stage and progress of an attempt; return whether it is the newest, and further."""
    given = {"of": document_id, "by": token, "at": stage, "done": progress, "now": time()}
    return bool((await connection.execute(_SHOW, given)).rowcount)


async def insert_work(
    connection: AsyncConnection, document_id: str, token: int, part: str, content: bytes
) -> bool:
    """Keep a part of what an attempt has made in the place of what was there; return whether no
    later attempt has written and the document is still there. Nothing else has to be locked.
    """
    given = {"of": document_id, "by": token, "named": part, "made": content}
    statement = _INSERT_WORK[connection.dialect.name]
    return bool((await connection.execute(statement, given)).rowcount)


async def forget_work(
    connection: AsyncConnection, document_id: str, *, but: str | None = None
) -> None:
    """Delete what finished stages have made of a document, but for a part if it is given."""
    wanted = WORK.c.document_id == document_id
    if but is not None:
        wanted = sa.and_(wanted, WORK.c.part != but)
    await connection.execute(WORK.delete().where(wanted))


async def read_replaced(connection: AsyncConnection, document_id: str) -> list[DocumentRow]:
    query = sa.select(DOCUMENTS).where(DOCUMENTS.c.replaced_by == document_id)
    return [document_of(row) for row in (await connection.execute(query)).mappings()]


async def count_changes(
    connection: AsyncConnection, document_ids: list[str], *, deleted: bool
) -> None:
    """Number the change of documents. Until the end of the transaction nobody else can."""
    for document_id in document_ids:
        number = await connection.scalar(
            COUNTER.update().values(number=COUNTER.c.number + 1).returning(COUNTER.c.number)
        )
        known = await connection.execute(
            CHANGES.update()
            .where(CHANGES.c.document_id == document_id)
            .values(number=number, deleted=deleted)
        )
        if not known.rowcount:
            await connection.execute(
                CHANGES.insert().values(document_id=document_id, number=number, deleted=deleted)
            )


def document_of(row: Mapping[Any, Any]) -> DocumentRow:
    values = {str(key): value for key, value in row.items()}
    values["status"] = Status(values["status"])
    for name in ("created_at", "updated_at"):
        values[name] = datetime.fromtimestamp(values[name], UTC)
    return DocumentRow(**values)


def place_of(after: str) -> sa.Tuple:
    created, _, document_id = after.partition("~")
    try:
        return sa.tuple_(sa.literal(float(created)), sa.literal(document_id))
    except ValueError:
        raise InvalidInput(f"after is {after!r}; use the value of the page before") from None
