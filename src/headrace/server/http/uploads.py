"""A job that is sent together with files.

    curl -F task=document.ingest -F file=@report.pdf -F 'args={"language": "ko"}' …/jobs

Each file is stored as an artifact of the job, and the argument of the same name is its path in the
artifact store: `ctx.artifacts` reads it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.types import Message

from headrace.api_types.requests import JobRequest
from headrace.artifacts.content import CHUNK
from headrace.artifacts.index import HandedIn
from headrace.artifacts.job_uploads import Upload, enqueue_with_files, file_name
from headrace.model.job import Job, NewJob
from headrace.server.auth.caller import Caller
from headrace.server.auth.reach import enqueue
from headrace.server.build_job import check_request, make_job
from headrace.server.http.body import check_length, decode, too_large
from headrace.server.http.body_limits import MOST_FIELDS, MOST_FILES
from headrace.server.http.problems import Refused, invalid, unreadable
from headrace.server.service import Service

_JSON_FIELDS = ("args", "meta")
# Of these null says nothing. For `timeout` it does: no time limit.
_NUMBERS = ("priority", "retries", "delay", "expires", "window", "max_wait")


async def enqueue_upload(service: Service, caller: Caller, request: Request) -> tuple[Job, bool]:
    """Store the files and the job, or neither. Also return whether the job is new."""
    limit = service.body_limits.form
    check_length(request, limit)
    bounded = Request(request.scope, bounded_receive(request, limit))
    async with bounded.form(
        max_files=MOST_FILES, max_fields=MOST_FIELDS, max_part_size=service.body_limits.request
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
    await check_request(service, caller, wanted)
    uploads = []
    for argument, file in files.items():
        if argument in wanted.args:
            raise invalid(
                f"args.{argument} is given as a file and as a value; leave one out", field="args"
            )
        name = file_name(file.filename)
        uploads.append(Upload(argument, name, _chunks(file), file.content_type))
    return await enqueue_with_files(
        service.app.engine,
        service.app.artifact_store,
        uploads,
        lambda kept: _job(service, caller, wanted, kept),
        lambda new: enqueue(service, caller, new),
        sealing=service.app.sealing,
    )


def _job(service: Service, caller: Caller, wanted: JobRequest, kept: list[HandedIn]) -> NewJob:
    """Return the job with its files: their paths as arguments, the rest in its `meta`."""
    return make_job(
        service,
        caller,
        msgspec.structs.replace(
            wanted,
            args=wanted.args | {each.argument: each.path for each in kept},
            meta=(wanted.meta or {}) | {"files": msgspec.to_builtins(kept)},
        ),
    )


async def _chunks(file: UploadFile) -> AsyncGenerator[bytes, None]:
    while chunk := await file.read(CHUNK):
        yield chunk


def _request(request: Request, fields: dict[str, str]) -> JobRequest:
    document: dict[str, Any] = {}
    for name, text in fields.items():
        if name in _NUMBERS and text.strip().lower() == "null":
            raise invalid("a form leaves out what it does not say; leave it out", field=name)
        document[name] = decode(text.encode(), dict[str, Any]) if name in _JSON_FIELDS else text
    try:
        wanted = msgspec.convert(document, JobRequest, strict=False)
    except msgspec.ValidationError as error:
        raise unreadable(error) from None
    return with_header_key(request, wanted)


def with_header_key(request: Request, wanted: JobRequest) -> JobRequest:
    """Return the request with the key of its `Idempotency-Key` header."""
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


def bounded_receive(request: Request, limit: int) -> Any:
    """Return a `receive` that refuses the body as soon as it is too large."""
    size = 0

    async def receive() -> Message:
        nonlocal size
        message = await request.receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise too_large(limit)
        return message

    return receive
