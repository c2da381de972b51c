"""Files of jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from starlette.requests import Request
from starlette.responses import Response

from headrace.api_types.requests import NAME, TEXT, KeepRequest, ReleaseRequest
from headrace.api_types.responses import FileReleased
from headrace.artifacts import LAYERS, check_path
from headrace.artifacts.index import file_of, files_of
from headrace.artifacts.kept import kept_paths
from headrace.artifacts.names import NAME_LIMIT
from headrace.errors import ArtifactNotFound, InvalidName
from headrace.model.artifact import Artifact, KeptFile
from headrace.server.auth.guard import caller_of, router
from headrace.server.http.body import read_json
from headrace.server.http.downloads import BYTES, Download
from headrace.server.http.problems import Refused
from headrace.server.openapi.registry import accepts, answers, page
from headrace.server.responses import answer, listed
from headrace.server.routes.job import JobId, the_job
from headrace.server.service import service_of

reading, writing = router("read"), router("write")

Layer = Annotated[str, Path(json_schema_extra={"enum": list(LAYERS)})]
Name = Annotated[str, Path(max_length=NAME_LIMIT)]
KeptPath = Annotated[str, Path(max_length=2_000)]

DOWNLOAD = "/jobs/{job_id}/artifacts/{layer}/{name:path}"


@reading.get(
    "/jobs/{job_id}/artifacts",
    summary="List a job's files",
    **answers(page("artifacts", Artifact)),
)
async def find(request: Request, job_id: JobId) -> Response:
    """The files that a job has stored, and those that were sent with it."""
    files = await files_of(service_of(request).app.engine, await the_job(request, job_id))
    return listed("artifacts", list(files.values()))


@reading.get(
    DOWNLOAD,
    summary="Download a file",
    **answers(
        {"type": "string", "format": "binary"},
        also={206: {"type": "string", "format": "binary"}},
        media_type=BYTES,
    ),
)
async def download(request: Request, job_id: JobId, layer: Layer, name: Name) -> Response:
    """The content of one file, or with `Range` a part of it. Its `ETag` is the SHA-256 checksum."""
    return await (await _asked(request, job_id, layer, name)).response()


@reading.head(DOWNLOAD, include_in_schema=False)
async def head(request: Request, job_id: JobId, layer: Layer, name: Name) -> Response:
    """What a download would say, without the content."""
    return await (await _asked(request, job_id, layer, name)).response()


async def _asked(request: Request, job_id: str, layer: str, name: str) -> Download:
    service = service_of(request)
    job = await the_job(request, job_id)
    try:
        file: Artifact | None = await file_of(service.app.engine, job, layer, name)
        if file is not None:
            # Before the response begins: after that it could only break off.
            size = await service.app.artifact_store.size(file.path)
            return Download(request, service.app.artifact_store, file, size=size)
    except (InvalidName, ArtifactNotFound):
        pass
    raise Refused(
        404,
        "artifact-not-found",
        f"job {job.id} has no file {layer[:20]}/{name[:60]}, or it is not in the store any more",
        remedy=f"see /jobs/{job.id}/artifacts",
    )


@reading.get(
    "/artifacts/kept",
    summary="List files that outlive their jobs",
    **answers(page("files", KeptFile)),
)
async def kept(
    request: Request,
    owner: Annotated[str | None, Query(pattern=NAME)] = None,
    cursor: Annotated[str | None, Query(pattern=TEXT)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:
    """By job, with who keeps each and why."""
    caller_of(request).check_unrestricted("kept files")
    found = await service_of(request).app.kept_files(owner, cursor=cursor, limit=limit)
    return listed("files", found.files, found.cursor)


@reading.get(
    "/artifacts/kept/{path:path}",
    summary="Download a file that outlives its job",
    **answers({"type": "string", "format": "binary"}, media_type=BYTES),
)
async def download_kept(request: Request, path: KeptPath) -> Response:
    """The content of a kept file by its path, also when its job is gone."""
    caller_of(request).check_unrestricted("kept files")
    service = service_of(request)
    try:
        layer, job_id = check_path(path)
        if path in await kept_paths(service.app.engine, job_id):
            store, name = service.app.artifact_store, path.split("/", 3)[3]
            size = await store.size(path)
            file = Artifact(layer=layer, name=name, path=path, size=size)
            return await Download(request, store, file, size=size).response()
    except (InvalidName, ArtifactNotFound):
        pass
    raise Refused(
        404,
        "artifact-not-found",
        f"nobody keeps a file {path[:200]!r}, or it is not in the store any more",
        remedy="see /artifacts/kept",
    )


@writing.post(
    "/artifacts/keep",
    summary="Keep a file when its job is pruned",
    **answers(KeptFile),
    **accepts(KeepRequest),
)
async def keep(request: Request) -> Response:
    """The file stays until its owner releases it. Keeping it again changes the reason."""
    service, caller = service_of(request), caller_of(request)
    asked = await read_json(request, KeepRequest)
    _, job_id = check_path(asked.path)
    if caller.queues:
        await the_job(request, job_id)
    file = await service.app.keep_file(asked.path, owner=asked.owner, reason=asked.reason)
    await service.audit.changed(caller, "artifact.keep", asked.path, owner=asked.owner)
    return answer(file)


@writing.post(
    "/artifacts/release",
    summary="Release a kept file",
    **answers(FileReleased),
    **accepts(ReleaseRequest),
)
async def release(request: Request) -> Response:
    """A file that nobody keeps any longer goes with its job, or now if that is gone."""
    service, caller = service_of(request), caller_of(request)
    asked = await read_json(request, ReleaseRequest)
    _, job_id = check_path(asked.path)
    if caller.queues:
        await the_job(request, job_id)
    released = await service.app.release_file(asked.path, owner=asked.owner)
    await service.audit.changed(caller, "artifact.release", asked.path, owner=asked.owner)
    return answer(FileReleased(asked.path, asked.owner, released))
