"""Kept files: files that outlive their job, because somebody said so.

Each owner of a file has a record in the engine, by job, path and owner. Pruning a job removes its
files except those that have a record; releasing the last one removes a file whose job is gone.

A keep that was acknowledged is never undone by a prune, whoever comes first:

* `keep` writes its record, then looks whether the file still belongs to something that exists: to a
  job that names it, to an upload that waits for its job, or to another owner. If not, it undoes the
  record and raises `ArtifactNotFound`.
* Whoever removes files makes sure first that what they belong to is gone, then reads the records.

So either the record was written before it was read, and the file is spared, or it was written
after the job was gone, and the keep is refused. Another owner counts only once its own keep is
`confirmed`: two that come while the last owner releases must not vouch for each other.
"""

from __future__ import annotations

import hashlib

import msgspec

from headrace.artifacts import pending_uploads
from headrace.artifacts.index import files_of
from headrace.artifacts.names import check_path
from headrace.artifacts.store import ArtifactStore
from headrace.engine.base import Engine
from headrace.engine.bounded_reads import records_of
from headrace.errors import ArtifactNotFound, EngineError, InvalidInput, RecordConflict
from headrace.model.artifact import KeptFile, KeptPage
from headrace.model.names import check_name
from headrace.model.views import Record

KIND = "kept-file"
PAGE = 500
REASON_LIMIT = 1_000
# Several may keep and release one file at once; each conflict means that another got on.
TRIES = 20


class KeptRecord(msgspec.Struct, omit_defaults=True):
    """What is known about one file and one owner."""

    path: str
    owner: str
    reason: str = ""
    size: int = 0
    confirmed: bool = False


async def keep(
    engine: Engine, store: ArtifactStore, path: str, *, owner: str, reason: str = ""
) -> KeptFile:
    """Keep a file for an owner, and return it. Keeping it again changes the reason.

    Raises `ArtifactNotFound` if there is no such file, or if its job is being pruned.
    """
    check_path(path)
    record = KeptRecord(path, check_name("owner", owner), _check_reason(reason))
    key = _key(path, owner)
    for _ in range(TRIES):
        before = await engine.record_get(KIND, key)
        if before is not None and _read(before).confirmed:
            record.size, record.confirmed = await store.size(path), True
        else:
            record.size, record.confirmed = 0, False
        version = 0 if before is None else before.version
        try:
            written = await engine.record_put(KIND, key, _encode(record), version=version)
            if record.confirmed:
                return _file(written)
            return await _confirm(engine, store, record, written)
        except RecordConflict:
            continue
    raise EngineError(f"file {path} is kept and released by others again and again; try later")


async def _confirm(
    engine: Engine, store: ArtifactStore, record: KeptRecord, written: Record
) -> KeptFile:
    try:
        await _check_belongs(engine, record)
        record.size = await store.size(record.path)
    except ArtifactNotFound:
        await engine.record_delete(KIND, written.key, version=written.version)
        await _remove_if_last(engine, store, record.path)
        raise
    record.confirmed = True
    return _file(
        await engine.record_put(KIND, written.key, _encode(record), version=written.version)
    )


async def release(engine: Engine, store: ArtifactStore, path: str, *, owner: str) -> bool:
    """End the claim of one owner; return False if there was none. A file that nobody else keeps is
    removed, if its job is gone.
    """
    check_path(path)
    released = await engine.record_delete(KIND, _key(path, check_name("owner", owner)))
    # Also if there was none: whoever was killed between the two steps comes again.
    await _remove_if_last(engine, store, path)
    return released


async def kept(
    engine: Engine, *, owner: str | None = None, cursor: str | None = None, limit: int = 50
) -> KeptPage:
    """Return kept files by job, of all owners or one, a page at a time."""
    if not 1 <= limit <= 1_000:
        raise InvalidInput(f"limit must be between 1 and 1000, got {limit}")
    if owner is not None:
        check_name("owner", owner)
    found: list[KeptFile] = []
    after = cursor or ""
    while True:
        records = await engine.record_list(KIND, after=after, limit=PAGE)
        for record in records:
            if owner is None or _read(record).owner == owner:
                if len(found) == limit:
                    return KeptPage(found, after)
                found.append(_file(record))
            after = record.key
        if len(records) < PAGE:
            return KeptPage(found)


async def kept_paths(engine: Engine, job_id: str) -> set[str]:
    """Return the paths of a job's files that are kept, or are about to be."""
    return {_read(record).path for record in await _records(engine, f"{job_id}/")}


async def _check_belongs(engine: Engine, record: KeptRecord) -> None:
    """Refuse a file that belongs to nothing that exists. The record has been written before."""
    if not await _belongs(engine, record):
        raise ArtifactNotFound(
            f"there is no file {record.path} to keep: its job is gone, or has replaced it"
        )


async def _belongs(engine: Engine, record: KeptRecord) -> bool:
    _, job_id = check_path(record.path)
    for job in await engine.get([job_id]):
        files = await files_of(engine, job)
        if any(file.path == record.path for file in files.values()):
            return True
    if await engine.record_get(pending_uploads.KIND, job_id) is not None:
        return record.path.startswith(f"bronze/{job_id}/0/")
    return any(other.confirmed for other in await _others(engine, record.path, record.owner))


async def _remove_if_last(engine: Engine, store: ArtifactStore, path: str) -> None:
    """Remove a file that nobody keeps and no job has. Its record must have been deleted before."""
    _, job_id = check_path(path)
    if await _others(engine, path, None):
        return
    if await engine.get([job_id]):
        return
    if await engine.record_get(pending_uploads.KIND, job_id) is not None:
        return
    await store.remove(path)


async def _others(engine: Engine, path: str, owner: str | None) -> list[KeptRecord]:
    records = [_read(record) for record in await _records(engine, _key(path, ""))]
    return [record for record in records if record.path == path and record.owner != owner]


async def _records(engine: Engine, prefix: str) -> list[Record]:
    return await records_of(engine, KIND, prefix=prefix, page=PAGE)


def _key(path: str, owner: str) -> str:
    _, job_id = check_path(path)
    return f"{job_id}/{hashlib.sha256(path.encode()).hexdigest()[:32]}/{owner}"


def _check_reason(reason: str) -> str:
    if not isinstance(reason, str) or len(reason) > REASON_LIMIT:
        raise InvalidInput(f"reason must be a text of at most {REASON_LIMIT} characters")
    return reason


def _encode(record: KeptRecord) -> bytes:
    return msgspec.json.encode(record)


def _read(record: Record) -> KeptRecord:
    return msgspec.json.decode(record.body, type=KeptRecord)


def _file(record: Record) -> KeptFile:
    known = _read(record)
    layer, job_id = check_path(known.path)
    return KeptFile(
        path=known.path,
        owner=known.owner,
        reason=known.reason,
        size=known.size,
        layer=layer,
        job_id=job_id,
        name=known.path.split("/", 3)[3],
        at=record.updated_at,
    )
