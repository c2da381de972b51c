"""Rotating encryption keys: which keys stored values still need, and records sealed anew.

New values are sealed with the first key, and every key opens. A stored job is never rewritten: it
keeps its key until it is pruned. Records (the arguments of schedules, dead letters) are not pruned,
so they are sealed anew here, each under the version that was read.

It only reads jobs, so it may run beside workers, be cut short at any point, and be repeated.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.artifacts.index import KIND as ARTIFACT
from headrace.artifacts.index import read_entries
from headrace.encryption import Sealing
from headrace.errors import ArtifactNotFound, MissingEncryptionKey, RecordConflict, SealedValue
from headrace.model.durable.entries import STAGE, StageRecord
from headrace.model.durable.writes import StoredEntry
from headrace.model.job import Job, JobFilter
from headrace.model.sealed import key_of_args, read_document, read_text
from headrace.model.views import Record
from headrace.monitor.paging import pages

if TYPE_CHECKING:
    from headrace.task.app_like import AppLike

SCHEDULE = "schedule"
LETTER = "dead-letter"
PAGE = 50
# Enough of a file to see which key it is sealed with.
HEAD_BYTES = 200
# Values of stages, and results of runs, that were too large to be stored with their job.
LARGE = ("stages/", "output.json")
# Wherever it stands in an attempt log.
_IN_LOG = re.compile(rb'"\$sealed:([A-Za-z0-9._-]+):')
_AT_START = re.compile(rb'\{"\$sealed":\{"key":"([A-Za-z0-9._-]+)"')


class KeyInUse(msgspec.Struct, kw_only=True):
    """What is sealed with a key. `known`: this process has it. `until` is when the last finished
    job is pruned that needs it, by the setting `history_seconds`; None while an unfinished job or
    a record needs it, or nothing does.
    """

    key: str
    known: bool
    seals: bool = False
    unfinished: int = 0
    finished: int = 0
    records: int = 0
    until: datetime | None = None

    @property
    def used(self) -> bool:
        """Whether something stored needs it."""
        return bool(self.unfinished or self.finished or self.records)


class Rotation(msgspec.Struct, kw_only=True):
    """What was found. `complete`: nothing needs any other key than the one that seals."""

    keys: list[KeyInUse]
    jobs: int
    resealed: int
    complete: bool


async def rotate_encryption(
    app: AppLike, *, on_progress: Callable[[int], None] = lambda _: None
) -> Rotation:
    """Seal records anew with the first key, and find out what the other keys are still needed for.
    Raises `MissingEncryptionKey` without keys.
    """
    sealing = app.sealing
    if sealing is None:
        raise MissingEncryptionKey(
            "this process has no encryption keys; give it all of them, the new one first: "
            "HEADRACE_ENCRYPTION_KEYS or HEADRACE_ENCRYPTION_KEY_FILE"
        )
    await app.open()
    first = sealing.keys.first.name
    found = {name: KeyInUse(key=name, known=True) for name in sealing.keys.names}
    found[first].seals = True

    def use(key: str) -> KeyInUse:
        return found.setdefault(key, KeyInUse(key=key, known=False))

    resealed = 0
    async for record in _records(app):
        for key in _keys_of_record(record):
            if key != first and await _reseal(app, sealing, record):
                resealed += 1
                key = first  # noqa: PLW2901 - that is what it is sealed with now
            use(key).records += 1
    jobs = 0
    history = timedelta(seconds=app.settings.history_seconds)
    async for page in pages(app.engine, JobFilter()):
        for job in page:
            for key in await _keys_of_job(app, job):
                _count(use(key), job, history)
        jobs += len(page)
        on_progress(jobs)
    for each in found.values():
        if each.unfinished or each.records:
            each.until = None
    complete = not any(each.used for each in found.values() if not each.seals)
    return Rotation(keys=list(found.values()), jobs=jobs, resealed=resealed, complete=complete)


def _count(use: KeyInUse, job: Job, history: timedelta) -> None:
    if not job.status.final:
        use.unfinished += 1
        return
    use.finished += 1
    pruned = (job.completed_at or job.created_at) + history
    use.until = pruned if use.until is None else max(use.until, pruned)


# -- jobs ------------------------------------------------------------------------------------------


async def _keys_of_job(app: AppLike, job: Job) -> set[str]:
    """Return the keys of all that is stored of a job."""
    keys = {key for key in [key_of_args(job.args_json)] if key is not None}
    if job.result_json is not None and (result := read_document(job.result_json)) is not None:
        keys.add(result.key)
    keys |= {key.decode() for key in _IN_LOG.findall(job.log)}
    task = app.tasks.get(job.task)
    # A job that is not sealed, of a task that is not encrypted, has no sealed entries.
    if job.token and (keys or task is None or task.encrypted):
        for entry in await app.engine.entries(job.id):
            keys |= {key async for key in _keys_of_entry(app, entry)}
    elif keys:
        for entry in await app.engine.entries(job.id):  # events may come before the first attempt
            keys |= {key async for key in _keys_of_entry(app, entry)}
    return keys


async def _keys_of_entry(app: AppLike, entry: StoredEntry) -> AsyncIterator[str]:
    if entry.kind == ARTIFACT:
        for file in read_entries([entry]).values():
            if file.name.startswith(LARGE) and (key := await _key_of_file(app, file.path)):
                yield key
        return
    sealed = read_document(entry.body)
    if entry.kind == STAGE:
        with contextlib.suppress(msgspec.DecodeError):
            record = msgspec.json.decode(entry.body, type=StageRecord)
            sealed = None if record.sealed is None else read_text(record.sealed)
    if sealed is not None:
        yield sealed.key


async def _key_of_file(app: AppLike, path: str) -> str | None:
    head = b""
    try:
        async for chunk in app.artifact_store.stream(path, end=HEAD_BYTES):
            head += chunk
    except ArtifactNotFound:
        return None
    found = _AT_START.match(head)
    return None if found is None else found[1].decode()


# -- records ---------------------------------------------------------------------------------------


async def _records(app: AppLike) -> AsyncIterator[Record]:
    for kind in (SCHEDULE, LETTER):
        after = ""
        while page := await app.engine.record_list(kind, after=after, limit=PAGE):
            for record in page:
                yield record
            after = page[-1].key


def _keys_of_record(record: Record) -> Iterator[str]:
    for document in _documents(record):
        sealed = read_document(document)
        if sealed is not None:
            yield sealed.key
            return


def _documents(record: Record) -> Iterator[bytes]:
    """Yield what may be sealed in a record."""
    with contextlib.suppress(msgspec.DecodeError):
        if record.kind == SCHEDULE:
            kept = msgspec.json.decode(record.body, type=_Schedules)
            for each in (kept.schedule, kept.declared):
                if each is not None:
                    yield msgspec.json.encode(each.params)
        else:
            yield msgspec.json.decode(record.body, type=_Letter).raw


class _Schedule(msgspec.Struct):
    """What is looked at of a schedule. Its own type needs the extra `cron`, and keys do not."""

    params: dict[str, Any] = {}


class _Schedules(msgspec.Struct):
    schedule: _Schedule | None = None
    declared: _Schedule | None = None


class _Letter(msgspec.Struct):
    raw: bytes = b""


async def _reseal(app: AppLike, sealing: Sealing, record: Record) -> bool:
    """Seal a record with the first key. Return False if its key is not here, or if somebody else
    changes it at this moment: it is tried again by the next call.
    """
    try:
        body = _resealed(sealing, record)
        await app.engine.record_put(record.kind, record.key, body, version=record.version)
    except (SealedValue, RecordConflict):
        return False
    return True


def _resealed(sealing: Sealing, record: Record) -> bytes:
    # All of it, as it is: a later program may have stored more than is known here.
    document = msgspec.json.decode(record.body)
    if record.kind == SCHEDULE:
        for part in ("schedule", "declared"):
            each = document.get(part)
            if each is not None and each["params"]:
                params = sealing.open_params(record.key, msgspec.json.encode(each["params"]))
                each["params"] = msgspec.Raw(sealing.params(record.key, params))
    else:
        raw = msgspec.json.decode(record.body, type=_Letter).raw
        document["raw"] = sealing.message(record.key, sealing.open_message(record.key, raw))
    return msgspec.json.encode(document)
