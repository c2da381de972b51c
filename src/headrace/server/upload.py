"""A job handed in together with the files that it is about.

    curl -F task=document.ingest -F file=@report.pdf -F 'args={"language": "ko"}' …/jobs

Each file is kept as an artifact of the job, and the argument of the same name is its path below
the artifacts folder.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

import msgspec
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.types import Message

from headrace.model.ids import new_id
from headrace.model.job import Job, NewJob
from headrace.server.auth import Caller
from headrace.server.bodies import JobRequest
from headrace.server.hand_in import make_job
from headrace.server.limits import SLACK, check_length, decode, too_large
from headrace.server.problems import Refused, invalid, unreadable
from headrace.server.state import Service

LAYER = "bronze"
MOST_FILES = 10
MOST_FIELDS = 20
# No attempt has the token 0, so what was handed in is never overwritten by one.
TOKEN = 0

_json = msgspec.json.Decoder(dict[str, Any])
_JSON_FIELDS = ("args", "meta")


class Kept(msgspec.Struct, frozen=True):
    """A file that came with a job, as the job's `meta` names it."""

    argument: str
    name: str
    path: str
    size: int
    media_type: str | None = None


async def enqueue_upload(service: Service, caller: Caller, request: Request) -> tuple[Job, bool]:
    """Store the files and the job, or neither. Also answers whether the job is new."""
    limit = service.upload_limit + SLACK
    check_length(request, limit)
    bounded = Request(request.scope, _bounded(request, limit))
    async with bounded.form(
        max_files=MOST_FILES, max_fields=MOST_FIELDS, max_part_size=service.body_limit
    ) as form:
        fields: dict[str, str] = {}
        files: dict[str, UploadFile] = {}
        for name, part in form.multi_items():
            if name in fields or name in files:
                raise invalid("the form has this part twice; send it once", field=name[:60])
            if isinstance(part, UploadFile):
                files[name] = part
            else:
                fields[name] = part
        if not files:
            raise invalid("the form has no file; send JSON instead, or add one", field="file")
        return await _store(service, caller, _request(request, fields), files)


async def _store(
    service: Service, caller: Caller, wanted: JobRequest, files: dict[str, UploadFile]
) -> tuple[Job, bool]:
    job_id = new_id()
    store = service.app.artifacts
    kept = []
    for argument, file in files.items():
        if argument in wanted.args:
            raise invalid(
                f"args.{argument} is given as a file and as a value; leave one out", field="args"
            )
        name = _file_name(file.filename)
        path = store.path(LAYER, job_id, TOKEN, f"{argument}/{name}")
        kept.append(Kept(argument, name, path, file.size or 0, file.content_type))
    wanted.args = wanted.args | {each.argument: each.path for each in kept}
    wanted.meta = (wanted.meta or {}) | {"files": msgspec.to_builtins(kept)}
    # Checked before anything is written.
    new: NewJob = make_job(service, caller, wanted)
    new.id = job_id
    created = False
    try:
        for each, file in zip(kept, files.values(), strict=True):
            await store.write(each.path, await file.read())
        job = await service.app.enqueue_job(new)
        created = job.id == job_id
    finally:
        if not created:
            for each in kept:
                await store.remove(each.path)
    return job, created


def _request(request: Request, fields: dict[str, str]) -> JobRequest:
    document: dict[str, Any] = {}
    for name, text in fields.items():
        document[name] = decode(text.encode(), _json) if name in _JSON_FIELDS else text
    try:
        wanted = msgspec.convert(document, JobRequest, strict=False)
    except msgspec.ValidationError as error:
        raise unreadable(error) from None
    return with_header_key(request, wanted)


def with_header_key(request: Request, wanted: JobRequest) -> JobRequest:
    """The request with the key of its `Idempotency-Key` header."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return wanted
    if not re.fullmatch(r"[^\x00-\x1f\x7f]{1,255}", key):
        raise invalid(
            "Idempotency-Key must have 1 to 255 characters; shorten it", field="Idempotency-Key"
        )
    if wanted.key is not None and wanted.key != key:
        raise Refused(
            409,
            "key-conflict",
            "the Idempotency-Key header and key in the body differ",
            field="key",
            value=wanted.key,
            remedy="send one of them",
        )
    wanted.key = key
    return wanted


def _file_name(given: str | None) -> str:
    """The last part of what a browser calls the file, if that can be used."""
    name = PurePosixPath((given or "").replace("\\", "/")).name
    name = "".join(each for each in name if each.isprintable())[-100:].strip()
    return name if name.strip(".") else "file"


def _bounded(request: Request, limit: int) -> Any:
    """The body, cut off with a refusal where it becomes too large."""
    size = 0

    async def receive() -> Message:
        nonlocal size
        message = await request.receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise too_large(limit)
        return message

    return receive
